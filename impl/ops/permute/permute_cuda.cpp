#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/permute/permute.hpp"
#include "impl/ops/permute/permute_launch.hpp"

namespace assay::impl::permute::cuda {

using impl::cuda::dtype_of;
using impl::cuda::stream;

Order order(const at::Tensor& experts, std::int64_t count) {
  const std::int64_t slots = experts.numel();
  Order out{.slots = at::empty({slots}, experts.options()),
            .rows = at::empty_like(experts),
            .ends = at::empty({count}, experts.options())};
  const at::Tensor counts = at::empty({chunks(slots), count}, experts.options());
  launch_order(slots, count, experts.const_data_ptr<std::int32_t>(), counts.data_ptr<std::int32_t>(),
               out.slots.data_ptr<std::int32_t>(), out.rows.data_ptr<std::int32_t>(),
               out.ends.data_ptr<std::int32_t>(), stream());
  return out;
}

Order limited(const Order& all, const at::Tensor& experts, const at::Tensor& choices, std::int64_t most) {
  Order out{at::empty_like(all.slots), at::empty_like(all.rows), at::empty_like(all.ends)};
  const at::Tensor firsts = at::empty({3, choices.size(0), choices.size(1)}, experts.options());
  launch_limit({.slot_count = all.slots.numel(),
                .G = choices.size(0),
                .X = choices.size(1),
                .most = most,
                .experts = experts.const_data_ptr<std::int32_t>(),
                .choices = choices.const_data_ptr<std::int32_t>(),
                .all_rows = all.rows.const_data_ptr<std::int32_t>(),
                .all_ends = all.ends.const_data_ptr<std::int32_t>(),
                .firsts = firsts.data_ptr<std::int32_t>(),
                .slots = out.slots.data_ptr<std::int32_t>(),
                .rows = out.rows.data_ptr<std::int32_t>(),
                .ends = out.ends.data_ptr<std::int32_t>()},
               stream());
  return out;
}

at::Tensor gather(const at::Tensor& x, const Order& order) {
  at::Tensor y = at::empty({order.slots.size(0), x.size(1)}, x.options());
  launch_gather(dtype_of(x), x.size(0), x.size(1), order.rows.size(1), x.const_data_ptr(),
                order.rows.const_data_ptr<std::int32_t>(), y.data_ptr(), stream());
  return y;
}

at::Tensor combine(const at::Tensor& base, const at::Tensor& rows, const Order& order) {
  at::Tensor y = at::empty({order.rows.size(0), rows.size(1)}, rows.options());
  launch_combine(dtype_of(rows), y.size(0), y.size(1), order.rows.size(1),
                 base.defined() ? base.const_data_ptr() : nullptr, rows.const_data_ptr(),
                 order.rows.const_data_ptr<std::int32_t>(), y.data_ptr(), stream());
  return y;
}

}  // namespace assay::impl::permute::cuda
