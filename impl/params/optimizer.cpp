#include "impl/params/optimizer.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/adamw/adamw.hpp"

namespace assay::impl {

std::vector<DecayRange> decay_ranges(const ParameterBuffers& buffers) {
  std::vector<DecayRange> ranges;
  for (std::size_t i = 0; i < buffers.placements.size(); ++i) {
    const spec::Parameter& parameter = buffers.inventory.parameters[i];
    const std::int64_t end = parameter.offset + parameter.size, group = buffers.placements[i].group,
                       moved = buffers.placements[i].moved;
    const bool alike = !ranges.empty() && ranges.back().group == group && ranges.back().moved == moved &&
                       (ranges.back().decay == parameter.matrix() || !parameter.learned());
    if (alike) {
      ranges.back().end = end;  // takes gaps and places of router biases along: they are zero and stay zero
    } else {
      ranges.push_back({parameter.offset, end, parameter.matrix(), group, moved});
    }
  }
  return ranges;
}

void zero_gradients(at::TensorList gradients) {
  if (gradients.empty()) return;
  const metrics::OpScope timed(spec::time::StepOp::zero_gradients, spec::time::StepPass::update);
  at::_foreach_zero_(gradients);
}

namespace {
/// More than any buffer has: entries of two groups never share a number.
constexpr std::int64_t entries_of_group = std::int64_t{1} << 44;

adamw::Settings range_settings(const AdamWSettings& settings, bool decay, double learning_rate = 0,
                               std::int64_t step = 1) {
  return {.learning_rate = learning_rate,
          .beta1 = settings.beta1,
          .beta2 = settings.beta2,
          .eps = settings.eps,
          .weight_decay = decay ? settings.weight_decay : 0.0,
          .step = step,
          .gradient_scale = 1,
          .seed = settings.seed,
          .first = 0};
}
}  // namespace

UpdateNumbers update_numbers(const ParameterBuffers& buffers, const AdamWSettings& settings,
                             double learning_rate, std::int64_t step) {
  const bool rounds = buffers.master.scalar_type() == at::kBFloat16;
  UpdateNumbers out;
  for (const bool decay : {true, false}) {
    const auto numbers = adamw::step_numbers(range_settings(settings, decay, learning_rate, step), rounds);
    std::copy(numbers.begin(), numbers.end(), out.begin() + (decay ? 0 : numbers.size()));
  }
  return out;
}

namespace {
void update_set(ParameterBuffers& buffers, const AdamWSettings& settings, const at::Tensor& numbers,
                const at::Tensor& coefficient) {
  const auto ranges = decay_ranges(buffers);
  for (const spec::Partition::Run& run : buffers.partition.runs(buffers.shard_rank)) {
    for (const DecayRange& range : ranges) {
      const std::int64_t begin = std::max(range.begin, run.begin),
                         end = std::min(range.end, run.begin + run.size);
      if (begin >= end) continue;
      const auto part = [&](const at::Tensor& buffer) {
        return owned(buffers, buffer, run).narrow(0, begin - run.begin, end - begin);
      };
      adamw::Settings of_range = range_settings(settings, range.decay);
      of_range.first =
          range.group * entries_of_group + range.moved + run.canonical_begin + (begin - run.begin);
      adamw::update_guarded(part(buffers.weights), part(buffers.master), part(buffers.gradients),
                            part(buffers.moment1), part(buffers.moment2), of_range, coefficient,
                            numbers.narrow(0, range.decay ? 0 : 4, 4));
    }
  }
}
}  // namespace

void update(ParameterBuffers& buffers, const AdamWSettings& settings, const at::Tensor& numbers,
            const at::Tensor& coefficient) {
  for (ParameterBuffers* set : buffers.sets()) update_set(*set, settings, numbers, coefficient);
}

void move_router_biases(const at::Tensor& biases, const at::Tensor& loads, double rate,
                        const at::Tensor& coefficient) {
  const auto X = static_cast<double>(loads.size(1));
  // Loads are whole numbers, far below 2^53: the comparison with their mean is exact.
  const at::Tensor moves = (loads.sum(1, /*keepdim=*/true) - loads * X).sign_().mul_(rate);
  biases.add_(at::where(at::isfinite(coefficient), moves, 0.0).to(biases.scalar_type()));
}

}  // namespace assay::impl
