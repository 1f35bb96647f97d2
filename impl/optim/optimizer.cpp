#include "impl/optim/optimizer.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/adamw.hpp"

namespace assay::impl {

std::vector<DecayRange> decay_ranges(const spec::Inventory& inventory) {
  std::vector<DecayRange> ranges;
  for (const spec::Parameter& parameter : inventory.parameters) {
    const std::int64_t end = parameter.offset + parameter.size;
    if (!ranges.empty() && ranges.back().decay == parameter.matrix()) {
      ranges.back().end = end;  // takes the alignment gap along: it is zero and stays zero
    } else {
      ranges.push_back({parameter.offset, end, parameter.matrix()});
    }
  }
  return ranges;
}

void zero_gradients(at::Tensor gradients) {
  const metrics::OpScope timed(spec::time::StepOp::zero_gradients, spec::time::StepPass::update);
  gradients.zero_();
}

void update(ParameterBuffers& buffers, const AdamWSettings& settings, double learning_rate, std::int64_t step,
            const at::Tensor& coefficient) {
  const auto ranges = decay_ranges(buffers.inventory);
  for (const spec::Partition::Run& run : buffers.partition.runs(buffers.shard_rank)) {
    for (const DecayRange& range : ranges) {
      const std::int64_t begin = std::max(range.begin, run.begin),
                         end = std::min(range.end, run.begin + run.size);
      if (begin >= end) continue;
      const auto part = [&](const at::Tensor& buffer) {
        return owned(buffers, buffer, run).narrow(0, begin - run.begin, end - begin);
      };
      adamw::update_guarded(part(buffers.weights), part(buffers.master), part(buffers.gradients),
                            part(buffers.moment1), part(buffers.moment2),
                            {.learning_rate = learning_rate,
                             .beta1 = settings.beta1,
                             .beta2 = settings.beta2,
                             .eps = settings.eps,
                             .weight_decay = range.decay ? settings.weight_decay : 0.0,
                             .step = step,
                             .gradient_scale = 1,
                             .seed = settings.seed,
                             .first = run.canonical_begin + (begin - run.begin)},
                            coefficient);
    }
  }
}

}  // namespace assay::impl
