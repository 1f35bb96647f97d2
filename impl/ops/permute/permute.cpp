#include "impl/ops/permute/permute.hpp"

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::permute {

using spec::time::StepOp;
using spec::time::StepPass;

Order order(const at::Tensor& experts, std::int64_t count) {
  const metrics::OpScope timed(StepOp::permute, StepPass::forward);
  check_contiguous("permute", {experts});
  TORCH_CHECK(experts.numel() < (std::int64_t{1} << 31), "permute: ", experts.numel(), " rows");
  return experts.is_cpu() ? cpu::order(experts, count) : cuda::order(experts, count);
}

Order limited(const Order& all, const at::Tensor& experts, const at::Tensor& choices, std::int64_t most) {
  const metrics::OpScope timed(StepOp::permute, StepPass::forward);
  check_contiguous("permute", {experts, choices, all.rows, all.ends});
  TORCH_CHECK(choices.dim() == 2 && choices.size(1) == all.ends.size(0) &&
                  experts.size(0) % choices.size(0) == 0 && most >= 0 && most < (std::int64_t{1} << 31),
              "permute: at most ", most, " rows of an expert from groups ", describe(choices), " of ",
              describe(experts));
  return experts.is_cpu() ? cpu::limited(all, experts, choices, most)
                          : cuda::limited(all, experts, choices, most);
}

namespace {
StepPass timed_as(spec::Pass pass) {
  return pass == spec::Pass::forward ? StepPass::forward : StepPass::backward;
}
}  // namespace

at::Tensor gather(const at::Tensor& x, const Order& order, spec::Pass pass) {
  const metrics::OpScope timed(StepOp::permute, timed_as(pass));
  check_contiguous("permute", {x});
  TORCH_CHECK(x.size(0) == order.rows.size(0), "permute: ", describe(x), " for ", describe(order.rows));
  return x.is_cpu() ? cpu::gather(x, order) : cuda::gather(x, order);
}

at::Tensor combine(const at::Tensor& base, const at::Tensor& rows, const Order& order, spec::Pass pass) {
  const metrics::OpScope timed(StepOp::permute, timed_as(pass));
  check_contiguous("permute", {base, rows});
  TORCH_CHECK(rows.size(0) == order.slots.size(0) &&
                  (!base.defined() || (base.size(0) == order.rows.size(0) && base.size(1) == rows.size(1))),
              "permute: ", describe(rows), " of ", describe(order.rows), " added to ", describe(base));
  return rows.is_cpu() ? cpu::combine(base, rows, order) : cuda::combine(base, rows, order);
}

}  // namespace assay::impl::permute
