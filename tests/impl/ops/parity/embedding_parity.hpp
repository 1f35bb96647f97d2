#pragma once
// embedding against the reference, on any device.
#include <rapidcheck.h>

#include "impl/ops/embedding/embedding.hpp"
#include "impl/ops/own_ids.hpp"
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

/// A table whose rows 1 to 4 ranks share: y is the sum of theirs, exactly, and each rank's gradient is that
/// of its rows. The last slices may be smaller, or empty.
inline void embedding_slices_match_reference(at::Device device) {
  const auto type = tests::draw_dtype();
  const Index V = *rc::gen::inRange<Index>(1, 12), D = tests::draw_extent(device, 80, 1000),
              ranks = *rc::gen::inRange<Index>(1, 5), part = (V + ranks - 1) / ranks;
  const auto ids = *rc::gen::container<reference::Ids>(rc::gen::inRange<Index>(0, V));
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Index N = static_cast<Index>(ids.size());
  const at::Tensor table = tests::normal({V, D}, seed, type), dy = tests::normal({N, D}, seed + 1, type);
  const at::Tensor id = tests::integers(ids).to(device);
  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten" : "op") << ", " << ranks << " ranks\n";
    at::Tensor y = at::zeros({N, D}, table.options().device(device)),
               dtable = at::zeros({V, D}, tests::math_of(type));
    dtable = dtable.to(device);
    for (Index r = 0; r < ranks; ++r) {
      const Index first = std::min(r * part, V), count = std::min(part, V - first);
      const at::Tensor own = own_ids(id, first, count);
      y += (generic ? embedding::aten::forward : embedding::forward)(table.narrow(0, first, count).to(device),
                                                                     own);
      (generic ? embedding::aten::backward : embedding::backward)(dy.to(device), own,
                                                                  dtable.narrow(0, first, count));
    }
    ASSAY_RC_CLOSE(values(y), values(reference::embedding::forward(exact(table), ids)),
                   tests::Allowed::exact());
    // Rows are added in the order of one rank: the same bits.
    at::Tensor of_one = at::zeros_like(dtable);
    (generic ? embedding::aten::backward : embedding::backward)(dy.to(device), id, of_one);
    RC_ASSERT(tests::same_bits(dtable, of_one));
  }
}

/// Zeros for a foreign id whatever the table holds, and a gradient that it leaves alone.
inline testing::AssertionResult foreign_ids_touch_no_row(at::Device device) {
  for (bool generic : tests::forms(device))
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
      for (const Index D : {3, 16}) {
        const at::Tensor table = at::full({2, D}, std::nan(""), at::TensorOptions(device).dtype(type));
        const at::Tensor own = own_ids(tests::integers({4, 0, 6}).to(device), 5, 2);
        const at::Tensor y = (generic ? embedding::aten::forward : embedding::forward)(table, own);
        if (!y.slice(0, 0, 2).eq(0).all().item<bool>() || !y[2].isnan().all().item<bool>())
          return testing::AssertionFailure() << "forward, " << type << ", D=" << D;
        at::Tensor dtable = at::ones({2, D}, at::TensorOptions(device).dtype(tests::math_of(type)));
        (generic ? embedding::aten::backward : embedding::backward)(at::ones_like(y), own, dtable);
        if (!dtable[0].eq(1).all().item<bool>() || !dtable[1].eq(2).all().item<bool>())
          return testing::AssertionFailure() << "backward, " << type << ", D=" << D;
      }
  return testing::AssertionSuccess();
}

}  // namespace assay::impl::parity
