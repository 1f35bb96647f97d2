#include "impl/ops/init.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/random/philox.hpp"

namespace assay::impl::init {

void fill(at::Tensor values, const spec::Parameter& parameter, std::int64_t index,
          const spec::ModelSpec& model, std::uint64_t seed) {
  require(values.numel() == parameter.size, "init_c1", [&] {
    return describe(values) + " for " + parameter.name + " of " + std::to_string(parameter.size);
  });
  const spec::random::Stream stream(seed, spec::random::Site::parameter, static_cast<std::uint32_t>(index));
  at::Tensor exact = at::empty({parameter.size}, at::kDouble);
  auto* value = exact.data_ptr<double>();
  at::parallel_for(0, parameter.size, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      value[i] = parameter.matrix() ? model.init_std * stream.normal(static_cast<std::uint64_t>(i)) : 1.0;
  });
  values.copy_(exact.view_as(values));
}

}  // namespace assay::impl::init
