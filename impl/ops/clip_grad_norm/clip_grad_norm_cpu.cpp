#include <ATen/ATen.h>

#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "impl/ops/cpu_math.hpp"

namespace assay::impl::clip_grad_norm::cpu {

at::Tensor sum_of_squares(const at::Tensor& gradient) {
  constexpr std::int64_t chunk = 8192;
  const std::int64_t size = gradient.numel();
  std::vector<double> sums(static_cast<std::size_t>((size + chunk - 1) / chunk));
  impl::cpu::with_element(gradient.scalar_type(), "sum_of_squares", [&](auto element) {
    using scalar_t = decltype(element);
    const auto* g = gradient.const_data_ptr<scalar_t>();
    impl::cpu::for_chunks(size, chunk, [&](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t width = 16;  // independent sums, so that additions need not wait for each other
      double parts[width] = {};
      std::int64_t i = begin;
      for (; i + width <= end; i += width) {
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) {
          const auto value = static_cast<double>(impl::cpu::Math<scalar_t>(g[i + j]));
          parts[j] += value * value;
        }
      }
      for (; i < end; ++i) {
        const auto value = static_cast<double>(impl::cpu::Math<scalar_t>(g[i]));
        parts[0] += value * value;
      }
      double sum = 0;
      for (double part : parts) sum += part;
      sums[static_cast<std::size_t>(begin / chunk)] = sum;
    });
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return at::scalar_tensor(total, at::kDouble);
}

}  // namespace assay::impl::clip_grad_norm::cpu
