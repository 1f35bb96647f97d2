#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/embedding/embedding.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::impl::embedding::cpu {

at::Tensor forward(const at::Tensor& table, const at::Tensor& ids) {
  const std::int64_t D = table.size(1), N = ids.numel();
  at::Tensor y = at::empty({N, D}, table.options());
  const auto* id = ids.const_data_ptr<std::int64_t>();
  impl::cpu::with_element(table.scalar_type(), "embedding", [&](auto element) {
    using scalar_t = decltype(element);
    const auto* rows = table.const_data_ptr<scalar_t>();
    auto* out = y.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, D, [&](std::int64_t n) {
      if (id[n] == spec::foreign)
        std::fill_n(out + n * D, D, scalar_t(0));
      else
        std::copy_n(rows + id[n] * D, D, out + n * D);
    });
  });
  return y;
}

void backward(const at::Tensor& dy, const at::Tensor& ids, at::Tensor dtable) {
  const std::int64_t D = dy.size(1), N = dy.size(0);
  const auto* id = ids.const_data_ptr<std::int64_t>();
  // Threads share the columns: every entry is summed by one thread, over n in order.
  constexpr std::int64_t columns = 32;
  const std::int64_t groups = (D + columns - 1) / columns;
  impl::cpu::with_element(dy.scalar_type(), "embedding_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using G = impl::cpu::Math<scalar_t>;
    TORCH_CHECK(dtable.scalar_type() == c10::CppTypeToScalarType<G>::value, "embedding gradient of ",
                dy.scalar_type(), " cannot be summed in ", dtable.scalar_type());
    const auto* gradient = dy.const_data_ptr<scalar_t>();
    auto* sums = dtable.data_ptr<G>();
    impl::cpu::for_rows(groups, N * columns, [&](std::int64_t group) {
      const std::int64_t begin = group * columns, end = std::min(D, begin + columns);
      for (std::int64_t n = 0; n < N; ++n) {
        if (id[n] == spec::foreign) continue;
        const scalar_t* from = gradient + n * D;
        G* to = sums + id[n] * D;
#pragma omp simd
        for (std::int64_t d = begin; d < end; ++d) to[d] += G(from[d]);
      }
    });
  });
}

}  // namespace assay::impl::embedding::cpu
