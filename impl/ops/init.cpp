#include "impl/ops/init.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/ops/init.hpp"

namespace assay::impl::init {

void fill(at::Tensor values, const spec::Parameter& parameter, std::int64_t index,
          const spec::ModelSpec& model, std::uint64_t seed) {
  spec::init::check_shape(parameter.role, parameter.shape);
  // init_c5
  require(values.numel() == parameter.size, "init_c5", [&] {
    return describe(values) + " for the " + std::to_string(parameter.size) + " entries of " + parameter.name;
  });
  at::Tensor exact = at::empty({parameter.size}, at::kDouble);
  auto* value = exact.data_ptr<double>();
  constexpr std::int64_t worth_a_thread = 1024;
  at::parallel_for(0, parameter.size, worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      value[i] = spec::init::initial_value(parameter.role, seed, index, static_cast<std::uint64_t>(i),
                                           model.init_std, model.layers);
  });
  values.copy_(exact.view_as(values));
}

}  // namespace assay::impl::init
