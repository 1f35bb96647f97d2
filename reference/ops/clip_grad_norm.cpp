#include "reference/ops/clip_grad_norm.hpp"

#include <cmath>
#include <string>

#include "reference/counted.hpp"
#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"

namespace assay::reference::clip_grad_norm {

template <class S>
Clipped clip(const std::vector<Tensor<S>*>& gradients, double max_norm) {
  using std::sqrt;
  S sum_of_squares = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (const S& g : gradients[i]->flat()) sum_of_squares += g * g;
    spec::clip_grad_norm::check_finite(static_cast<double>(sum_of_squares), "gradient " + std::to_string(i));
  }
  const double norm = static_cast<double>(sqrt(sum_of_squares));
  const double coefficient = spec::clip_grad_norm::coefficient(norm, max_norm);
  for (Tensor<S>* gradient : gradients) {
    for (S& g : gradient->flat()) g *= S(coefficient);
  }
  return {norm, coefficient};
}

template Clipped clip(const std::vector<Tensor<double>*>&, double);
template Clipped clip(const std::vector<Tensor<Counted>*>&, double);

}  // namespace assay::reference::clip_grad_norm
