#include "reference/ops/qk_norm.hpp"

#include "reference/counted.hpp"
#include "reference/ops/rms_norm.hpp"
#include "spec/ops/qk_norm/qk_norm.hpp"

namespace assay::reference::qk_norm {

namespace {
/// As rows of a gain's entries: heads, or where the gain has the entries of all heads, those of a token.
template <class S>
Tensor<S> rows(const Tensor<S>& x, const Tensor<S>& gain) {
  return x.reshaped({x.size() / gain.size(), gain.size()});
}
}  // namespace

template <class S>
Forward<S> forward(const Tensor<S>& q, const Tensor<S>& k, const Tensor<S>& q_gain, const Tensor<S>& k_gain,
                   double eps) {
  spec::qk_norm::check(spec::qk_norm::shape_of(q.shape(), k.shape()), q_gain.size(), k_gain.size(), eps);

  const auto queries = rms_norm::forward(rows(q, q_gain), q_gain, eps);
  const auto keys = rms_norm::forward(rows(k, k_gain), k_gain, eps);
  return {queries.y.reshaped(q.shape()), keys.y.reshaped(k.shape()), queries.rstd, keys.rstd};
}

template <class S>
Backward<S> backward(const Tensor<S>& dq_out, const Tensor<S>& dk_out, const Tensor<S>& q, const Tensor<S>& k,
                     const Tensor<S>& q_gain, const Tensor<S>& k_gain, const Forward<S>& saved) {
  spec::qk_norm::shape_of(q.shape(), k.shape());
  spec::qk_norm::shape_of(q.shape(), dq_out.shape());
  spec::qk_norm::shape_of(k.shape(), dk_out.shape());

  const auto queries = rms_norm::backward(rows(dq_out, q_gain), rows(q, q_gain), q_gain, saved.q_rstd);
  const auto keys = rms_norm::backward(rows(dk_out, k_gain), rows(k, k_gain), k_gain, saved.k_rstd);
  return {queries.dx.reshaped(q.shape()), keys.dx.reshaped(k.shape()), queries.dgain, keys.dgain};
}

template Forward<double> forward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                 const Tensor<double>&, double);
template Forward<Counted> forward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                  const Tensor<Counted>&, double);
template Backward<double> backward(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                                   const Forward<double>&);
template Backward<Counted> backward(const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Tensor<Counted>&, const Tensor<Counted>&, const Tensor<Counted>&,
                                    const Forward<Counted>&);

}  // namespace assay::reference::qk_norm
