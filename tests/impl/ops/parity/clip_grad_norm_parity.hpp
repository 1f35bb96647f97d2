#pragma once
// clip_grad_norm against a plain loop and the spec, on any device.
#include <rapidcheck.h>

#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// The sum of squares of a drawn gradient against a plain loop, and what is decided from it against the spec.
inline void clip_grad_norm_matches_spec(at::Device device) {
  const auto type = tests::draw_dtype();
  const Index size = *rc::gen::element<Index>(1, 7, 100, 8192, 8193, 20000);
  const at::Tensor gradient =
      tests::normal({size}, *rc::gen::arbitrary<std::uint64_t>(), type, 1e-3).to(device);
  const double expected = exact(gradient).flat().square().sum();
  // Squares are positive: T2 over size terms on each side; the generic form takes a root and squares it
  // again.
  const double bound = 2 * gamma(static_cast<double>(size) + 3, unit_roundoff(Dtype::f64)) * expected;
  for (const at::Tensor& sum :
       {clip_grad_norm::sum_of_squares(gradient), clip_grad_norm::aten::sum_of_squares(gradient)}) {
    RC_ASSERT(sum.scalar_type() == at::kDouble);
    ASSAY_RC_CLOSE(tests::values(sum), (tests::Values{{}, {expected}}), tests::Allowed::elementwise({bound}));
  }
  const at::Tensor sum = clip_grad_norm::sum_of_squares(gradient);
  const auto exact_type = at::TensorOptions(device).dtype(at::kDouble);
  const double norm = std::sqrt(sum.item<double>()), limit = *rc::gen::element(0.0, 1e-3, 10.0);
  const at::Tensor control =
      clip_grad_norm::norm_and_coefficient(sum, at::ones({2}, exact_type), limit).cpu();
  RC_ASSERT(control[0].item<double>() == norm);
  RC_ASSERT(control[1].item<double>() == (limit == 0 ? 1.0 : clip_grad_norm::coefficient(norm, limit)));
  for (double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    RC_ASSERT(std::isnan(
        clip_grad_norm::norm_and_coefficient(sum, at::full({2}, bad, exact_type), limit)[1].item<double>()));
}

}  // namespace assay::impl::parity
