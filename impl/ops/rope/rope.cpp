#include "impl/ops/rope/rope.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::impl::rope {

void check(const at::Tensor& x, std::int64_t rotated, const Table& table, const at::Tensor& positions) {
  const std::int64_t B = x.size(0), T = x.size(1), limit = table.cosine.size(0);
  std::vector<std::int64_t> given(static_cast<std::size_t>(B * T), 0);
  std::int64_t last = T - 1;
  if (positions.defined()) {
    given.resize(static_cast<std::size_t>(positions.numel()));
    last = -1;  // the loader has checked the values of positions that are on a device
    if (positions.is_cpu()) {
      std::copy_n(positions.const_data_ptr<std::int32_t>(), positions.numel(), given.begin());
      for (std::int64_t position : given) last = std::max(last, position);
    }
  }
  spec::rope::check({.B = B, .T = T, .H = rotated, .E = x.size(3)}, given, table.cosine.size(1));
  // rope_c6
  require(last < limit, "rope_c6", [&] {
    return "position " + std::to_string(last) + ", table of " + std::to_string(limit) + " positions";
  });
}

Table table(const std::vector<double>& inverse_frequencies, std::int64_t positions, at::ScalarType compute,
            at::Device device, double factor) {
  const auto half = static_cast<std::int64_t>(inverse_frequencies.size());
  const at::ScalarType type = compute == at::kBFloat16 ? at::kFloat : compute;
  at::Tensor cosine = at::empty({positions, half}, at::kDouble),
             sine = at::empty({positions, half}, at::kDouble);
  auto *c = cosine.data_ptr<double>(), *s = sine.data_ptr<double>();
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t e = 0; e < half; ++e) {
      const double angle = static_cast<double>(position) * inverse_frequencies[static_cast<std::size_t>(e)];
      c[position * half + e] = factor * std::cos(angle);
      s[position * half + e] = factor * std::sin(angle);
    }
  }
  return {cosine.to(at::TensorOptions(device).dtype(type)), sine.to(at::TensorOptions(device).dtype(type))};
}

void rotate(at::Tensor x, std::int64_t rotated, const Table& table, const at::Tensor& positions,
            bool inverse) {
  using spec::time::StepPass;
  const metrics::OpScope timed(spec::time::StepOp::rope, inverse ? StepPass::backward : StepPass::forward);
  check(x, rotated, table, positions);
  check_contiguous("rope", {x, table.cosine, table.sine, positions});
  return x.is_cpu() ? cpu::rotate(x, rotated, table, positions, inverse)
                    : cuda::rotate(x, rotated, table, positions, inverse);
}

at::Tensor joined_backward(const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv,
                           const Table& table, const at::Tensor& positions) {
  const metrics::OpScope timed(spec::time::StepOp::rope, spec::time::StepPass::backward);
  check(dq, dq.size(2), table, positions);
  TORCH_CHECK(dk.sizes() == dv.sizes() && dk.size(0) == dq.size(0) && dk.size(1) == dq.size(1) &&
                  dk.size(3) == dq.size(3),
              "rope: dq ", describe(dq), ", dk ", describe(dk), " and dv ", describe(dv), " do not fit");
  check_contiguous("rope", {table.cosine, table.sine, positions});
  return dq.is_cpu() ? cpu::joined_backward(dq, dk, dv, table, positions)
                     : cuda::joined_backward(dq, dk, dv, table, positions);
}

namespace aten {
void rotate(at::Tensor x, std::int64_t rotated, const Table& table, const at::Tensor& positions,
            bool inverse) {
  const std::int64_t T = x.size(1), half = x.size(3) / 2;
  const auto of_tokens = [&](const at::Tensor& angles) {
    return positions.defined() ? at::index_select(angles, 0, positions.flatten()).view({-1, T, 1, half})
                               : angles.narrow(0, 0, T).view({1, T, 1, half});
  };
  const at::Tensor cosine = of_tokens(table.cosine),
                   sine = inverse ? -of_tokens(table.sine) : of_tokens(table.sine);
  at::Tensor low = x.narrow(2, 0, rotated).narrow(3, 0, half),
             high = x.narrow(2, 0, rotated).narrow(3, half, half);
  const at::Tensor a = low.to(cosine.scalar_type()), b = high.to(cosine.scalar_type());
  const at::Tensor new_low = a * cosine - b * sine, new_high = b * cosine + a * sine;
  low.copy_(new_low);
  high.copy_(new_high);
}

at::Tensor joined_backward(const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv,
                           const Table& table, const at::Tensor& positions) {
  const at::Tensor dqkv = at::cat({dq, dk, dv}, 2).contiguous();
  aten::rotate(dqkv, dq.size(2) + dk.size(2), table, positions, /*inverse=*/true);
  return dqkv;
}
}  // namespace aten

}  // namespace assay::impl::rope
