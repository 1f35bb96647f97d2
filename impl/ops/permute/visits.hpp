#pragma once
// Which ranks hold the experts of a token, and what travels there with it (spec/parallel/expert_ranks.md): X
// experts over e ranks, X/e neighbours each. N tokens with A choices of experts each; S visits, pairs of a
// token and a rank that holds one of its experts, S <= N min(A, e).
#include <ATen/core/Tensor.h>

#include "impl/ops/permute/permute.hpp"

namespace assay::impl::permute {

/// The choices of N tokens.
struct Choices {
  at::Tensor experts;                ///< [N, A] int32
  at::Tensor rows;                   ///< [N, A] int32, undefined, or -1 for a choice that was dropped
  at::Tensor weights;                ///< [N, A] fp32 or fp64
  std::int64_t ranks = 1, each = 1;  ///< e, and X/e
};

/// Tokens by the rank that they visit: slot n e + r has a row where token n visits rank r. Of `slots` the
/// first N min(A, e).
Order by_rank(const Choices& choices);

/// [e, 2] int32: tokens, and choices of experts, for each rank, written to `counts`. `ends`: of by_rank.
/// `expert_ends` [X]: of the order of all rows.
void count_visits(const Choices& choices, const Order& by_rank, const at::Tensor& expert_ends,
                  const at::Tensor& counts);

/// What travels with each visit, one row of integers: the weights of the token's choices and their experts,
/// by the numbers that they have on that rank, -1 for the choices of other ranks. int32 [N min(A, e), A (1 +
/// s/4)] for weights of s bytes, of which the first S rows are defined.
at::Tensor packed_choices(const Choices& choices, const Order& by_rank);

/// The same where it arrived, of M tokens.
struct Arrived {
  at::Tensor experts;  ///< [M, A] int32
  at::Tensor weights;  ///< [M, A] of the type that was packed
};
Arrived unpacked_choices(const at::Tensor& packed, at::ScalarType weights, std::int64_t A);

/// What came back of each choice, of_visits [S, A], as [N, A]: from the rank of its expert; 0 of a choice
/// that was dropped.
at::Tensor by_choice(const at::Tensor& of_visits, const Choices& choices, const Order& by_rank);

namespace cpu {
at::Tensor visited(const Choices& choices);
decltype(permute::count_visits) count_visits;
decltype(permute::packed_choices) packed_choices;
decltype(permute::unpacked_choices) unpacked_choices;
decltype(permute::by_choice) by_choice;
}  // namespace cpu
namespace cuda {
at::Tensor visited(const Choices& choices);
decltype(permute::count_visits) count_visits;
decltype(permute::packed_choices) packed_choices;
decltype(permute::unpacked_choices) unpacked_choices;
decltype(permute::by_choice) by_choice;
}  // namespace cuda

}  // namespace assay::impl::permute
