#include <ATen/ATen.h>

#include "impl/ops/bias/bias.hpp"
#include "impl/ops/cpu_math.hpp"

namespace assay::impl::bias::cpu {

using impl::cpu::load;
using impl::cpu::store;

void backward(const at::Tensor& dy, at::Tensor dbias) {
  const std::int64_t N = dy.size(0), out = dy.size(1);
  impl::cpu::with_element(dy.scalar_type(), "bias_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = impl::cpu::Math<scalar_t>;
    constexpr std::int64_t lanes = impl::cpu::Lanes<M>::count;
    const auto* dys = dy.const_data_ptr<scalar_t>();
    impl::cpu::sum_over_rows<M>(N, out, dbias.data_ptr<M>(), [&](std::int64_t n, M* sums) {
      const scalar_t* row = dys + n * out;
      for (std::int64_t o = 0; o < out; o += lanes)
        store(sums + o, load(sums + o, out - o) + load(row + o, out - o), out - o);
    });
  });
}

}  // namespace assay::impl::bias::cpu
