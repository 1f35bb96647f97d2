#include "reference/ops/adamw.hpp"

#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/adamw/adamw_rounding.hpp"
#include "spec/random/stochastic_rounding.hpp"

namespace assay::reference::adamw {

template <class S>
void update(Tensor<S>& parameter, const Tensor<S>& gradient, Tensor<S>& moment1, Tensor<S>& moment2,
            const spec::adamw::Settings& settings) {
  using std::sqrt;
  spec::adamw::check_entries("gradient", gradient.size(), parameter.size());
  spec::adamw::check_entries("moment1", moment1.size(), parameter.size());
  spec::adamw::check_entries("moment2", moment2.size(), parameter.size());
  const auto step = spec::adamw::scalars(settings);
  const S weight1 = 1 - settings.beta1, weight2 = 1 - settings.beta2;

  for (Index i = 0; i < parameter.size(); ++i) {
    const S g = gradient[i];
    parameter[i] *= S(step.kept);
    moment1[i] += weight1 * (g - moment1[i]);
    moment2[i] = S(settings.beta2) * moment2[i] + weight2 * (g * g);
    const S denominator = sqrt(moment2[i]) / S(step.root_correction2) + S(settings.eps);
    parameter[i] -= S(step.step_size) * moment1[i] / denominator;
  }
}

template void update(Tensor<double>&, const Tensor<double>&, Tensor<double>&, Tensor<double>&,
                     const spec::adamw::Settings&);
template void update(Tensor<Counted>&, const Tensor<Counted>&, Tensor<Counted>&, Tensor<Counted>&,
                     const spec::adamw::Settings&);

void update_bf16(Tensor<double>& parameter, const Tensor<double>& gradient, Tensor<double>& moment1,
                 Tensor<double>& moment2, const spec::adamw::Settings& settings, std::uint64_t seed,
                 std::uint64_t first) {
  using spec::random::stochastic_bf16_of_real;
  const auto stream = spec::adamw::rounding_stream(seed, settings.step);
  update(parameter, gradient, moment1, moment2, settings);
  for (Index i = 0; i < parameter.size(); ++i) {
    const std::uint64_t entry = first + static_cast<std::uint64_t>(i);
    const auto bits = spec::adamw::rounding_bits(stream.block(entry / 2), entry);
    parameter[i] = stochastic_bf16_of_real(parameter[i], bits.parameter);
    moment1[i] = stochastic_bf16_of_real(moment1[i], bits.moment1);
    moment2[i] = stochastic_bf16_of_real(moment2[i], bits.moment2);
  }
}

}  // namespace assay::reference::adamw
