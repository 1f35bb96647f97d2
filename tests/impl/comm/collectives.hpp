#pragma once
// What every engine must do, on any number of ranks and any device. Sums of whole numbers are exact in every
// dtype, so that results are compared bit for bit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

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
  // What is gathered may be of any dtype: bits move.
  const at::Tensor codes = at::arange(5, at::TensorOptions(device).dtype(at::kByte)).mul(41).add(rank),
                   all = at::zeros({5 * ranks}, codes.options());
  c.wait(c.begin_all_gather(codes.view(at::kFloat8_e4m3fn), all.view(at::kFloat8_e4m3fn)));
  for (int r = 0; r < ranks; ++r)
    EXPECT_TRUE(at::equal(all.narrow(0, 5 * r, 5), codes - rank + r)) << "all-gather of FP8, rank " << rank;
}

/// The maximum is that of the numbers, below zero and at the ends of the range too; a NaN on any one rank,
/// whatever its sign, is a NaN on all, and next to it nothing is.
inline void expect_maxima(impl::Communicator& c, at::Device device,
                          const std::vector<std::int64_t>& sizes = {0, 1, 4099}) {
  const int ranks = c.size(), rank = c.rank();
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong}) {
    const std::string where =
        std::string(at::toString(type)) + " rank " + std::to_string(rank) + " of " + std::to_string(ranks);
    for (const std::int64_t n : sizes) {
      at::Tensor wanted = numbers(n, 0, type, device);
      for (int r = 1; r < ranks; ++r) wanted = at::maximum(wanted, numbers(n, r, type, device));
      const at::Tensor largest = numbers(n, rank, type, device);
      c.all_reduce_max(largest);
      EXPECT_TRUE(at::equal(largest, wanted)) << where << " n=" << n;
      const at::Tensor least = numbers(n, rank, type, device).neg();
      at::Tensor of_negative = numbers(n, 0, type, device).neg();
      for (int r = 1; r < ranks; ++r)
        of_negative = at::maximum(of_negative, numbers(n, r, type, device).neg());
      c.all_reduce_max(least);
      EXPECT_TRUE(at::equal(least, of_negative)) << where << " n=" << n;
    }
    if (!at::isFloatingType(type)) continue;
    for (int odd = 0; odd < ranks; ++odd) {
      // By column: what the odd rank has, what the others have, what all get.
      const std::vector<std::array<double, 3>> columns = {{nan, 1, nan},
                                                          {-nan, infinity, nan},
                                                          {nan, -infinity, nan},
                                                          {1, 2, 2},
                                                          {-3e38, -infinity, -3e38},
                                                          {-1e-30, -1e-20, -1e-30},
                                                          {infinity, 1, infinity},
                                                          {-infinity, -infinity, -infinity},
                                                          {-2, -1, -1}};
      std::vector<double> mine, wanted;
      for (const auto& [of_odd, of_others, of_all] : columns) {
        mine.push_back(rank == odd ? of_odd : of_others);
        wanted.push_back(ranks == 1 ? of_odd : of_all);
      }
      const at::Tensor largest = at::tensor(mine, at::kDouble).to(type).to(device);
      c.all_reduce_max(largest);
      EXPECT_TRUE(
          at::allclose(largest.cpu(), at::tensor(wanted, at::kDouble).to(type), 0, 0, /*equal_nan=*/true))
          << where << ", odd rank " << odd << ": " << largest.cpu();
    }
  }
}

/// What rank `from` sends to rank `to` as its message `number`.
inline at::Tensor message(int from, int to, int number, std::int64_t n, at::ScalarType type,
                          at::Device device) {
  return (at::arange(n, at::kLong).remainder(5) + from * 16 + to * 4 + number * 64).to(type).to(device);
}

/// Every rank sends two messages to every rank, itself included, in one call: of other sizes, some empty.
/// Then large ones in both directions at once, and one that is passed on from rank to rank.
inline void expect_messages(impl::Communicator& c, at::Device device) {
  const int ranks = c.size(), rank = c.rank();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kByte}) {
    const auto length = [](int from, int to) { return std::int64_t{3} * ((from + 2 * to) % 4); };
    impl::Messages messages;
    std::vector<at::Tensor> wanted;
    for (int peer = 0; peer < ranks; ++peer)
      for (int number = 0; number < 2; ++number) {
        messages.sends.push_back({message(rank, peer, number, length(rank, peer), type, device), peer});
        wanted.push_back(message(peer, rank, number, length(peer, rank), type, device));
        messages.receives.push_back({at::zeros_like(wanted.back()), peer});
      }
    c.wait(c.begin_exchange(messages));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(at::equal(messages.receives[i].tensor, wanted[i]))
          << at::toString(type) << " message " << i % 2 << " from " << i / 2 << " to " << rank;
  }
  EXPECT_NO_THROW(c.wait(c.begin_exchange({})));
  if (ranks == 1) return;

  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  const at::Tensor here = at::full({1 << 21}, rank, at::TensorOptions(at::kFloat).device(device)),
                   from_last = at::empty_like(here), from_next = at::empty_like(here);
  c.wait(c.begin_exchange(
      {.sends = {{here, next}, {here, last}}, .receives = {{from_last, last}, {from_next, next}}}));
  EXPECT_TRUE(at::equal(from_last, at::full_like(here, last)));
  EXPECT_TRUE(at::equal(from_next, at::full_like(here, next)));

  const at::Tensor passed = at::full({1000}, rank == 0 ? 7 : -1, here.options());
  if (rank > 0) c.wait(c.begin_receive(passed, rank - 1));
  passed.add_(1);
  if (rank + 1 < ranks) c.wait(c.begin_send(passed, rank + 1));
  EXPECT_TRUE(at::equal(passed, at::full_like(passed, 8 + rank)));
}

/// Rows of all ranks to all ranks: numbers that differ by pair, some of them 0, and none at all.
inline void expect_all_to_all(impl::Communicator& c, at::Device device) {
  const int ranks = c.size(), rank = c.rank();
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kByte})
    for (const int factor : {0, 1, 100}) {
      const auto rows = [&](int from, int to) { return std::int64_t{factor} * ((2 * from + to) % 3); };
      std::vector<std::int64_t> sent, received;
      std::vector<at::Tensor> send{at::empty({0, 3}, at::TensorOptions(type).device(device))}, wanted = send;
      for (int r = 0; r < ranks; ++r) {
        sent.push_back(rows(rank, r)), received.push_back(rows(r, rank));
        send.push_back(message(rank, r, 0, 3 * sent.back(), type, device).view({-1, 3}));
        wanted.push_back(message(r, rank, 0, 3 * received.back(), type, device).view({-1, 3}));
      }
      const at::Tensor from_all = at::cat(wanted), receive = at::zeros_like(from_all);
      c.wait(c.begin_all_to_all(at::cat(send), sent, receive, received));
      EXPECT_TRUE(at::equal(receive, from_all))
          << at::toString(type) << " times " << factor << " rank " << rank;
    }
}

/// Everything that an engine does beside sums, shards and gathers.
inline void expect_maxima_and_messages(impl::Communicator& c, at::Device device) {
  expect_maxima(c, device);
  expect_messages(c, device);
  expect_all_to_all(c, device);
}

/// Collectives and messages begun together, of which the last is waited for.
inline void expect_all_kinds_in_flight(impl::Communicator& c, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const int ranks = c.size(), rank = c.rank(), next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  const at::Tensor sum = at::full({300}, rank + 1, options), largest = at::full({300}, rank, options),
                   sent = at::full({300}, rank, options), received = at::full({300}, -1, options),
                   after = at::full({300}, 1, options);
  c.begin_all_reduce_sum(sum);
  c.begin_all_reduce_max(largest);
  c.begin_exchange({.sends = {{sent, next}}, .receives = {{received, last}}});
  c.wait(c.begin_all_reduce_sum(after));
  EXPECT_TRUE(at::equal(sum, at::full_like(sum, ranks * (ranks + 1) / 2)));
  EXPECT_TRUE(at::equal(largest, at::full_like(sum, ranks - 1)));
  EXPECT_TRUE(at::equal(received, at::full_like(sum, last)));
  EXPECT_TRUE(at::equal(after, at::full_like(sum, ranks)));
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
      const at::Tensor largest = at::full({1}, c.rank(), at::TensorOptions(at::kFloat).device(device));
      group->all_reduce_max(largest);
      EXPECT_EQ(largest.item<double>(), static_cast<double>(ranks.back()));
      const auto texts = group->all_gather(std::string(static_cast<std::size_t>(c.rank()), 'x'));
      for (std::size_t i = 0; i < ranks.size(); ++i)
        EXPECT_EQ(texts.at(i).size(), static_cast<std::size_t>(ranks[i]));
    }
  }
}

/// Maxima and messages of rows and columns, whose ranks are others than the world's.
inline void expect_messages_in_groups(impl::Communicator& c, at::Device device) {
  for (std::int64_t width = 1; width <= c.size(); ++width) {
    if (c.size() % width != 0) continue;
    std::vector<std::int64_t> row, column;
    for (std::int64_t r = 0; r < c.size(); ++r) {
      if (r / width == c.rank() / width) row.push_back(r);
      if (r % width == c.rank() % width) column.push_back(r);
    }
    for (const auto& ranks : {row, column}) expect_maxima_and_messages(*c.group(ranks), device);
  }
}

/// Messages that name no rank, or counts that do not fit.
inline void expect_refused_messages(impl::Communicator& c, at::Device device) {
  const at::Tensor rows = at::zeros({4, 2}, at::TensorOptions(at::kFloat).device(device));
  EXPECT_THROW(c.begin_send(rows, c.size()), std::invalid_argument);
  EXPECT_THROW(c.begin_receive(rows, -1), std::invalid_argument);
  EXPECT_THROW(c.begin_send(rows.t(), 0), std::invalid_argument);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(c.size()), 0), short_of_one = counts;
  counts[0] = 4, short_of_one[0] = 3;
  const at::Tensor room = at::zeros_like(rows);
  EXPECT_THROW(c.begin_all_to_all(rows, short_of_one, room, counts), std::invalid_argument);
  EXPECT_THROW(c.begin_all_to_all(rows, counts, room, short_of_one), std::invalid_argument);
  counts.push_back(0);
  EXPECT_THROW(c.begin_all_to_all(rows, counts, room, counts), std::invalid_argument);
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
