#pragma once
// embedding against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/embedding/embedding.hpp"
#include "reference/ops/embedding.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// Drawn ids with repeats against the reference.
inline void embedding_matches_reference(at::Device device) {
  const auto type = tests::draw_dtype();
  const Index V = *rc::gen::inRange<Index>(1, 12), D = tests::draw_extent(device, 80, 1000);
  const auto ids = *rc::gen::container<reference::Ids>(rc::gen::inRange<Index>(0, V));
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Index N = static_cast<Index>(ids.size());
  const at::Tensor table = tests::normal({V, D}, seed, type), dy = tests::normal({N, D}, seed + 1, type);
  const at::Tensor before = tests::normal({V, D}, seed + 2, tests::math_of(type));

  const auto y = reference::embedding::forward(exact(table), ids);
  auto expected = reference::embedding::backward(exact(dy), ids, V);
  expected.flat() += exact(before).flat();
  auto sizes = exact(dy);
  sizes.flat() = sizes.flat().abs();
  const auto terms = reference::embedding::backward(sizes, ids, V);
  const auto bound = tests::each(V * D, [&](Index i) {  // T2: one addition per occurrence of the id
    const auto count = static_cast<double>(std::count(ids.begin(), ids.end(), i / D));
    return tests::rounding_of(type).gamma(count + 1) * (terms[i] + std::abs(exact(before)[i]));
  });
  const auto on = [&](const at::Tensor& tensor) {
    return tensor.to(device, /*non_blocking=*/false, /*copy=*/true);
  };
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << "\n";
    const at::Tensor id = on(tests::integers(ids)), dtable = on(before);
    ASSAY_RC_CLOSE(values((generic ? embedding::aten::forward : embedding::forward)(on(table), id)),
                   values(y), tests::Allowed::exact());
    (generic ? embedding::aten::backward : embedding::backward)(on(dy), id, dtable);
    ASSAY_RC_CLOSE(values(dtable), values(expected), bound);
  }
}

}  // namespace assay::impl::parity
