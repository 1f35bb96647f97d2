#include "impl/ops/init/init.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/init/init_launch.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/ops/init/init.hpp"

namespace assay::impl::init {

namespace {
void fill_on_cpu(at::Tensor values, const spec::random::Stream& numbers, double scale, const Slice& slice) {
  at::Tensor exact = at::empty({values.numel()}, at::kDouble);
  auto* value = exact.data_ptr<double>();
  constexpr std::int64_t worth_a_thread = 1024;
  at::parallel_for(0, values.numel(), worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      value[i] = scale * numbers.normal(static_cast<std::uint64_t>(slice.entry(i)));
  });
  values.copy_(exact.view_as(values));
}
}  // namespace

void fill(at::Tensor values, const spec::Parameter& parameter, std::int64_t index,
          const spec::ModelSpec& model, std::uint64_t seed, const Slice& slice) {
  spec::init::check_shape(parameter.role, parameter.shape);
  // init_c5
  require(slice.row == 0 ? values.numel() == parameter.size
                         : values.numel() % slice.row == 0 && values.numel() <= parameter.size,
          "init_c5", [&] {
            return describe(values) + " for the " + std::to_string(parameter.size) + " entries of " +
                   parameter.name;
          });
  check_contiguous("init", {values});
  const spec::random::Stream numbers = spec::init::initial_stream(seed, index);
  const double scale = spec::init::initial_std(parameter.role, model.init_std, model.layers);
  if (!parameter.matrix()) {
    values.fill_(spec::init::initial_value(parameter.role, seed, index, 0, model.init_std, model.layers));
  } else if (values.is_cuda()) {
    cuda::launch({.dtype = impl::cuda::dtype_of(values),
                  .values = values.data_ptr(),
                  .n = values.numel(),
                  .first = slice.first,
                  .row = slice.row == 0 ? std::max<std::int64_t>(1, values.numel()) : slice.row,
                  .apart = slice.apart,
                  .numbers = numbers,
                  .scale = scale},
                 impl::cuda::stream());
  } else {
    fill_on_cpu(values, numbers, scale, slice);
  }
}

}  // namespace assay::impl::init
