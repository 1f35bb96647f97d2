#include "reference/ops/adamw.hpp"

#include <cmath>

#include "reference/counted.hpp"

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

}  // namespace assay::reference::adamw
