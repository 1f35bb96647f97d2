#include "impl/ops/embedding.hpp"

#include <ATen/ATen.h>

#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"

namespace assay::impl::embedding {

namespace {
void check(std::int64_t vocabulary, const at::Tensor& ids) {
  if (!ids.is_cpu()) return;
  const auto* id = ids.const_data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < ids.numel(); ++n) {
    // embedding_c1
    require(id[n] >= 0 && id[n] < vocabulary, "embedding_c1", [&] {
      return "id " + std::to_string(id[n]) + " at " + std::to_string(n) + ", V=" + std::to_string(vocabulary);
    });
  }
}
}  // namespace

at::Tensor forward(const at::Tensor& table, const at::Tensor& ids) {
  check(table.size(0), ids);
  return table.is_cpu() ? cpu::forward(table, ids) : aten::forward(table, ids);
}

void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable) {
  check(dtable.size(0), ids);
  return dy.is_cpu() ? cpu::backward(dy, ids, dtable) : aten::backward(dy, ids, dtable);
}

namespace aten {
at::Tensor forward(const at::Tensor& table, const at::Tensor& ids) { return at::index_select(table, 0, ids); }

void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable) {
  // Not index_add_: on CUDA that adds atomically, in any order; this sorts the ids and adds each id's rows in
  // turn.
  dtable.index_put_({ids}, dy.to(dtable.scalar_type()), /*accumulate=*/true);
}
}  // namespace aten

}  // namespace assay::impl::embedding
