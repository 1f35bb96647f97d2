#pragma once
// Which ranks tokens visit and what travels with them, on any device, against plain loops over the definition
// (spec/parallel/expert_ranks.md).
#include <ATen/ATen.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "impl/ops/permute/visits.hpp"
#include "spec/ops/permute/permute.hpp"

namespace assay::impl::parity {

/// Drawn choices, some of them dropped by a capacity.
struct DrawnChoices {
  permute::Choices of;
  permute::Order order;
};

inline DrawnChoices draw_choices(at::Device device) {
  using Index = std::int64_t;
  const Index e = *rc::gen::inRange<Index>(1, 9), each = *rc::gen::inRange<Index>(1, 9), X = e * each,
              A = 1 + *rc::gen::inRange<Index>(0, 1000) % std::min<Index>(X, 9),
              N = *rc::gen::element<Index>(1, 2, 7, 64, 300);
  at::manual_seed(*rc::gen::inRange<std::uint64_t>(0, 1000));
  const at::Tensor experts =
      at::rand({N, X}).argsort(std::int64_t{1}, false).narrow(1, 0, A).to(at::kInt).contiguous();
  DrawnChoices out;
  out.of.experts = experts.to(device);
  out.of.weights = at::rand({N, A}, *rc::gen::element(at::kFloat, at::kDouble)).to(device);
  out.of.ranks = e, out.of.each = each;
  out.order = permute::order(out.of.experts, X);
  if (*rc::gen::arbitrary<bool>()) {
    const at::Tensor counts = at::bincount(experts.view({-1}), {}, X).to(at::kInt).view({1, X}).to(device);
    out.order = permute::limited(out.order, out.of.experts, counts, *rc::gen::inRange<Index>(0, N + 1));
    out.of.rows = out.order.rows;
  }
  return out;
}

inline void visits_follow_the_definition(at::Device device) {
  const DrawnChoices drawn = draw_choices(device);
  const permute::Choices& of = drawn.of;
  const std::int64_t N = of.experts.size(0), A = of.experts.size(1), e = of.ranks, each = of.each;
  const permute::Order by_rank = permute::by_rank(of);
  const at::Tensor counts = at::empty({e, 2}, of.experts.options());
  permute::count_visits(of, by_rank, drawn.order.ends, counts);
  const at::Tensor packed = permute::packed_choices(of, by_rank);

  const at::Tensor experts = of.experts.cpu(), weights = of.weights.cpu(),
                   rows = of.rows.defined() ? of.rows.cpu() : at::zeros_like(experts);
  const auto goes_to = [&](std::int64_t n, std::int64_t a) {
    return rows[n][a].item<int>() < 0 ? -1 : experts[n][a].item<int>() / each;
  };
  std::vector<std::int64_t> slots;  // n e + r of each visit, by rank and there by token
  std::vector<std::int32_t> wanted_counts;
  for (std::int64_t r = 0; r < e; ++r) {
    std::int32_t tokens = 0, choices = 0;
    for (std::int64_t n = 0; n < N; ++n) {
      std::int32_t of_token = 0;
      for (std::int64_t a = 0; a < A; ++a) of_token += goes_to(n, a) == r;
      choices += of_token;
      if (of_token == 0) continue;
      ++tokens;
      slots.push_back(n * e + r);
    }
    wanted_counts.insert(wanted_counts.end(), {tokens, choices});
  }
  RC_ASSERT(at::equal(counts.cpu().view({-1}), at::tensor(wanted_counts, at::kInt)));
  const auto S = static_cast<std::int64_t>(slots.size());
  RC_ASSERT(S <= by_rank.slots.size(0));
  RC_ASSERT(at::equal(by_rank.slots.cpu().narrow(0, 0, S).to(at::kLong), at::tensor(slots, at::kLong)));

  const permute::Arrived arrived =
      permute::unpacked_choices(packed.narrow(0, 0, S), of.weights.scalar_type(), A);
  const at::Tensor back = at::rand({S, A}, of.weights.options());
  const at::Tensor got = permute::by_choice(back, of, by_rank).cpu(), back_here = back.cpu();
  const at::Tensor there = arrived.experts.cpu(), their_weights = arrived.weights.cpu();
  at::Tensor wanted_experts = at::empty_like(there), wanted_weights = at::empty_like(their_weights),
             wanted = at::zeros_like(got);
  for (std::int64_t row = 0; row < S; ++row) {
    const std::int64_t n = slots[static_cast<std::size_t>(row)] / e,
                       r = slots[static_cast<std::size_t>(row)] % e;
    for (std::int64_t a = 0; a < A; ++a) {
      const bool here = goes_to(n, a) == r;
      wanted_experts[row][a] = here ? experts[n][a].item<int>() - r * each : -1;
      if (here) wanted[n][a] = back_here[row][a];
    }
    wanted_weights[row].copy_(weights[n]);
  }
  RC_ASSERT(at::equal(there, wanted_experts));
  RC_ASSERT(at::equal(their_weights, wanted_weights));
  RC_ASSERT(at::equal(got, wanted));
}

/// Choices without an expert have no row, and rows are gathered and summed as if those choices were not
/// there.
inline void order_passes_over_choices_of_others(at::Device device) {
  const DrawnChoices drawn = draw_choices(device);
  const std::int64_t N = drawn.of.experts.size(0), A = drawn.of.experts.size(1),
                     X = drawn.of.ranks * drawn.of.each;
  const at::Tensor others = at::rand({N, A}).lt(0.5),
                   experts = drawn.of.experts.cpu().masked_fill(others, -1);
  permute::Order order = permute::order(experts.to(device), X);
  const auto rows = order.ends[-1].item<std::int64_t>();
  RC_ASSERT(rows == experts.ge(0).sum().item<std::int64_t>());
  RC_ASSERT(at::equal(order.rows.cpu().lt(0), others));
  order.slots = order.slots.narrow(0, 0, rows);
  const at::Tensor x = at::rand({N, 4}, at::kDouble).to(device), y = permute::gather(x, order);
  const at::Tensor taken = order.slots.cpu().to(at::kLong).div(A, "floor");
  RC_ASSERT(at::equal(y.cpu(), x.cpu().index_select(0, taken)));
  const at::Tensor summed = permute::combine({}, y, order).cpu();
  const at::Tensor times = experts.ge(0).sum(1).to(at::kDouble).unsqueeze(1);
  RC_ASSERT((summed - x.cpu() * times).abs().max().item<double>() <= 1e-14 * static_cast<double>(A));
}

}  // namespace assay::impl::parity
