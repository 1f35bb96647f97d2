#include "impl/ops/own_ids.hpp"

#include <ATen/ATen.h>

#include "spec/ops/cross_entropy/cross_entropy.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::impl {

at::Tensor own_ids(const at::Tensor& ids, std::int64_t first, std::int64_t count) {
  // The masks are of the global ids: id - first may itself be -100 or -1.
  const at::Tensor elsewhere = ids.lt(first).logical_or_(ids.ge(first + count));
  return ids.sub(first)
      .masked_fill_(elsewhere, spec::foreign)
      .masked_fill_(ids.eq(spec::cross_entropy::ignore), spec::cross_entropy::ignore);
}

}  // namespace assay::impl
