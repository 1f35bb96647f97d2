#include "impl/ops/embedding/embedding.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/embedding/embedding.hpp"

namespace assay::impl::embedding {

namespace {
void check(const at::Tensor& table, const at::Tensor& ids) {
  const spec::embedding::Shape shape{.N = ids.numel(), .V = table.size(0), .D = table.size(1)};
  if (!ids.is_cpu()) return spec::embedding::check(shape, {}, spec::Vocabulary::slice);
  spec::embedding::check(shape, {ids.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(ids.numel())},
                         spec::Vocabulary::slice);
}
}  // namespace

at::Tensor forward(const at::Tensor& table, const at::Tensor& ids) {
  const metrics::OpScope timed(spec::time::StepOp::embedding, spec::time::StepPass::forward);
  check(table, ids);
  check_contiguous("embedding", {table, ids});
  return table.is_cpu() ? cpu::forward(table, ids) : cuda::forward(table, ids);
}

void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable) {
  const metrics::OpScope timed(spec::time::StepOp::embedding, spec::time::StepPass::backward);
  check(dtable, ids);
  check_contiguous("embedding", {dy, ids, dtable});
  spec::embedding::check_upstream({.N = ids.numel(), .V = dtable.size(0), .D = dtable.size(1)}, dy.numel());
  return dy.is_cpu() ? cpu::backward(dy, ids, dtable) : cuda::backward(dy, ids, dtable);
}

namespace aten {
at::Tensor forward(const at::Tensor& table, const at::Tensor& ids) {
  if (table.size(0) == 0) return at::zeros({ids.numel(), table.size(1)}, table.options());
  const at::Tensor y = at::index_select(table, 0, ids.clamp_min(0));
  return y.masked_fill_(ids.eq(spec::foreign).unsqueeze(1), 0);
}

void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable) {
  // Not index_add_: on CUDA that adds atomically, in any order; this sorts the ids and adds each id's rows in
  // turn.
  const at::Tensor own = ids.ne(spec::foreign).nonzero().squeeze(1);
  dtable.index_put_({ids.index_select(0, own)}, dy.index_select(0, own).to(dtable.scalar_type()),
                    /*accumulate=*/true);
}
}  // namespace aten

}  // namespace assay::impl::embedding
