#include "impl/ops/permute/visits.hpp"

#include <algorithm>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::permute {

using spec::time::StepOp;
using spec::time::StepPass;

namespace {
void check(const Choices& choices) {
  check_contiguous("permute", {choices.experts, choices.rows, choices.weights});
  TORCH_CHECK(choices.experts.dim() == 2 && choices.weights.sizes() == choices.experts.sizes() &&
                  choices.ranks >= 1 && choices.each >= 1,
              "permute: choices ", describe(choices.experts), " with weights ", describe(choices.weights),
              " over ", choices.ranks, " ranks of ", choices.each, " experts");
}
}  // namespace

Order by_rank(const Choices& choices) {
  check(choices);
  Order out = order(choices.experts.is_cpu() ? cpu::visited(choices) : cuda::visited(choices), choices.ranks);
  out.slots =
      out.slots.narrow(0, 0, choices.experts.size(0) * std::min(choices.experts.size(1), choices.ranks));
  return out;
}

void count_visits(const Choices& choices, const Order& by_rank, const at::Tensor& expert_ends,
                  const at::Tensor& counts) {
  const metrics::OpScope timed(StepOp::permute, StepPass::forward);
  check_contiguous("permute", {by_rank.ends, expert_ends, counts});
  TORCH_CHECK(counts.numel() == 2 * choices.ranks && expert_ends.numel() == choices.ranks * choices.each,
              "permute: counts ", describe(counts), " of experts ", describe(expert_ends));
  (counts.is_cpu() ? cpu::count_visits : cuda::count_visits)(choices, by_rank, expert_ends, counts);
}

at::Tensor packed_choices(const Choices& choices, const Order& by_rank) {
  const metrics::OpScope timed(StepOp::permute, StepPass::forward);
  check(choices);
  return choices.experts.is_cpu() ? cpu::packed_choices(choices, by_rank)
                                  : cuda::packed_choices(choices, by_rank);
}

Arrived unpacked_choices(const at::Tensor& packed, at::ScalarType weights, std::int64_t A) {
  const metrics::OpScope timed(StepOp::permute, StepPass::forward);
  check_contiguous("permute", {packed});
  TORCH_CHECK(packed.size(1) * 4 == A * (4 + static_cast<std::int64_t>(c10::elementSize(weights))),
              "permute: packed choices ", describe(packed), " of ", A, " experts");
  return packed.is_cpu() ? cpu::unpacked_choices(packed, weights, A)
                         : cuda::unpacked_choices(packed, weights, A);
}

at::Tensor by_choice(const at::Tensor& of_visits, const Choices& choices, const Order& by_rank) {
  const metrics::OpScope timed(StepOp::permute, StepPass::backward);
  check(choices);
  check_contiguous("permute", {of_visits});
  TORCH_CHECK(of_visits.size(1) == choices.experts.size(1), "permute: ", describe(of_visits), " of ",
              describe(choices.experts));
  return of_visits.is_cpu() ? cpu::by_choice(of_visits, choices, by_rank)
                            : cuda::by_choice(of_visits, choices, by_rank);
}

}  // namespace assay::impl::permute
