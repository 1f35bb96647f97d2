#include "reference/ops/embedding.hpp"

#include "reference/counted.hpp"
#include "spec/ops/embedding/embedding.hpp"

namespace assay::reference::embedding {

template <class S>
Tensor<S> forward(const Tensor<S>& table, const Ids& ids) {
  const Index N = static_cast<Index>(ids.size()), D = table.extent(1);
  spec::embedding::check({.N = N, .V = table.extent(0), .D = D}, ids);

  Tensor<S> y({N, D});
  for (Index n = 0; n < N; ++n) {
    for (Index d = 0; d < D; ++d) y(n, d) = table(ids[static_cast<std::size_t>(n)], d);
  }
  return y;
}

template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Ids& ids, Index V) {
  const Index N = static_cast<Index>(ids.size()), D = dy.extent(-1);
  const spec::embedding::Shape shape{.N = N, .V = V, .D = D};
  spec::embedding::check(shape, ids);
  spec::embedding::check_upstream(shape, dy.size());

  Tensor<S> dtable({V, D});
  for (Index n = 0; n < N; ++n) {
    for (Index d = 0; d < D; ++d) dtable(ids[static_cast<std::size_t>(n)], d) += dy[n * D + d];
  }
  return dtable;
}

template Tensor<double> forward(const Tensor<double>&, const Ids&);
template Tensor<Counted> forward(const Tensor<Counted>&, const Ids&);
template Tensor<double> backward(const Tensor<double>&, const Ids&, Index);
template Tensor<Counted> backward(const Tensor<Counted>&, const Ids&, Index);

}  // namespace assay::reference::embedding
