#include "impl/optim/optimizer.hpp"

#include <ATen/ATen.h>

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

void update(ParameterBuffers& buffers, const AdamWSettings& settings, double learning_rate, std::int64_t step,
            const at::Tensor& coefficient) {
  for (const DecayRange& range : decay_ranges(buffers.inventory)) {
    const auto part = [&](const at::Tensor& flat) {
      return flat.narrow(0, range.begin, range.end - range.begin);
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
                           .first = range.begin},
                          coefficient);
  }
}

}  // namespace assay::impl
