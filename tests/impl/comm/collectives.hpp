#pragma once
// What every engine must do, on any number of ranks and any device. Sums of whole numbers are exact in every
// dtype, so that results are compared bit for bit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "impl/comm/communicator.hpp"

namespace assay::tests {

/// [n] numbers that differ by rank and index; sums over 16 ranks are exact in bf16.
inline at::Tensor numbers(std::int64_t n, std::int64_t rank, at::ScalarType type, at::Device device) {
  const at::Tensor index = at::arange(n, at::kLong);
  return (index.remainder(7) - 3 + (rank % 4)).to(type).to(device);
}

inline at::Tensor sum_of_numbers(std::int64_t n, int ranks, at::ScalarType type, at::Device device) {
  at::Tensor sum = numbers(n, 0, type, device);
  for (int r = 1; r < ranks; ++r) sum += numbers(n, r, type, device);
  return sum;
}

inline void expect_collectives(impl::Communicator& c, at::Device device) {
  const int ranks = c.size(), rank = c.rank();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong}) {
    for (const std::int64_t n : {1, 5, 4099}) {
      const std::int64_t all = n * ranks;
      const std::string where = std::string(at::toString(type)) + " n=" + std::to_string(n) + " rank " +
                                std::to_string(rank) + " of " + std::to_string(ranks);
      const at::Tensor sum = sum_of_numbers(all, ranks, type, device);
      const auto mine = [&](const at::Tensor& whole) { return whole.narrow(0, rank * n, n); };

      at::Tensor reduced = numbers(all, rank, type, device);
      c.all_reduce_sum(reduced);
      EXPECT_TRUE(at::equal(reduced, sum)) << "all-reduce " << where;

      const at::Tensor apart = at::zeros({n}, reduced.options()), whole = numbers(all, rank, type, device);
      c.wait(c.begin_reduce_scatter_sum(whole, apart));
      EXPECT_TRUE(at::equal(apart, mine(sum))) << "reduce-scatter " << where;

      const at::Tensor within = numbers(all, rank, type, device);
      c.wait(c.begin_reduce_scatter_sum(within, mine(within)));
      EXPECT_TRUE(at::equal(mine(within), mine(sum))) << "reduce-scatter in index " << where;

      const at::Tensor gathered = at::zeros({all}, reduced.options());
      c.wait(c.begin_all_gather(apart, gathered));
      EXPECT_TRUE(at::equal(gathered, sum)) << "all-gather " << where;

      at::Tensor in_place = at::zeros({all}, reduced.options());
      mine(in_place).copy_(apart);
      c.wait(c.begin_all_gather(mine(in_place), in_place));
      EXPECT_TRUE(at::equal(in_place, sum)) << "all-gather in index " << where;
    }
  }
}

/// Several in flight, waited for out of order and all at once.
inline void expect_tickets_in_order(impl::Communicator& c, at::Device device) {
  std::vector<at::Tensor> tensors;
  std::vector<impl::Communicator::Ticket> tickets;
  for (std::int64_t i = 0; i < 6; ++i) {
    tensors.push_back(at::full({64}, i + c.rank(), at::TensorOptions(at::kFloat).device(device)));
    tickets.push_back(c.begin_all_reduce_sum(tensors.back()));
  }
  const auto expect = [&](std::size_t i) {
    const int n = c.size();
    const double sum = static_cast<double>(n) * static_cast<double>(i) + n * (n - 1) / 2.0;
    EXPECT_TRUE(at::equal(tensors[i], at::full_like(tensors[i], sum))) << "number " << i;
  };
  c.wait(tickets[3]);
  for (std::size_t i : {0u, 1u, 2u, 3u}) expect(i);
  c.wait(tickets[1]);
  c.wait_all();
  for (std::size_t i : {4u, 5u}) expect(i);
  c.settle();
}

/// Rows and columns of the ranks as a grid: each group sums its own ranks only.
inline void expect_groups(impl::Communicator& c, at::Device device) {
  for (std::int64_t width = 1; width <= c.size(); ++width) {
    if (c.size() % width != 0) continue;
    std::vector<std::int64_t> row, column;
    for (std::int64_t r = 0; r < c.size(); ++r) {
      if (r / width == c.rank() / width) row.push_back(r);
      if (r % width == c.rank() % width) column.push_back(r);
    }
    for (const auto& ranks : {row, column}) {
      const auto group = c.group(ranks);
      ASSERT_EQ(group->size(), static_cast<int>(ranks.size()));
      EXPECT_EQ(ranks.at(static_cast<std::size_t>(group->rank())), c.rank());
      const at::Tensor sum = at::full({1}, c.rank(), at::TensorOptions(at::kDouble).device(device));
      group->all_reduce_sum(sum);
      EXPECT_EQ(sum.item<double>(), static_cast<double>(std::accumulate(ranks.begin(), ranks.end(), 0LL)));
      const auto texts = group->all_gather(std::string(static_cast<std::size_t>(c.rank()), 'x'));
      for (std::size_t i = 0; i < ranks.size(); ++i)
        EXPECT_EQ(texts.at(i).size(), static_cast<std::size_t>(ranks[i]));
    }
  }
}

/// Tensors that a collective of equal parts does not take.
inline void expect_refusals(impl::Communicator& c, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const at::Tensor whole = at::zeros({4 * c.size()}, options);
  EXPECT_THROW(c.begin_all_gather(at::zeros({3}, options), whole), std::invalid_argument);
  EXPECT_THROW(c.begin_all_gather(at::zeros({4}, options.dtype(at::kDouble)), whole), std::invalid_argument);
  EXPECT_THROW(c.begin_reduce_scatter_sum(whole, at::zeros({5}, options)), std::invalid_argument);
  if (c.size() > 1) {
    const std::int64_t other = (c.rank() + 1) % c.size();
    EXPECT_THROW(c.begin_reduce_scatter_sum(whole, whole.narrow(0, 4 * other, 4)), std::invalid_argument);
  }
}

}  // namespace assay::tests
