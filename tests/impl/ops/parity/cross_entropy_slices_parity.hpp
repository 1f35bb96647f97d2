#pragma once
// cross_entropy of a vocabulary whose columns several ranks share, against the reference and against one
// rank, on any device. The all-reduces between the ranks are done by hand.
#include "impl/ops/own_ids.hpp"
#include "tests/impl/ops/parity/cross_entropy_parity.hpp"

namespace assay::impl::parity {

/// What one tensor rank holds.
struct OwnColumns {
  Index first, count, pad;
  at::Tensor targets;
  at::Tensor whole;  ///< [N, count + pad], 100 beyond the columns
  at::Tensor logits() const { return whole.narrow(1, 0, count); }
};

/// Slices of equal size, rounded up: the last ones may be smaller, or empty.
inline std::vector<OwnColumns> sliced(const CrossEntropyDrawn& d, Index ranks) {
  std::vector<OwnColumns> all;
  const Index part = (d.V + ranks - 1) / ranks;
  for (Index r = 0; r < ranks; ++r) {
    const Index first = std::min(r * part, d.V), count = std::min(part, d.V - first),
                pad = *rc::gen::element<Index>(0, 1, 8);
    const at::Tensor whole = at::full({d.N, count + pad}, 100, d.logits.options().device(d.device));
    whole.narrow(1, 0, count).copy_(d.logits.narrow(1, first, count));
    all.push_back({first, count, pad, own_ids(tests::integers(d.targets).to(d.device), first, count), whole});
  }
  return all;
}

/// The steps that each rank takes, and the all-reduces between them.
template <class PartialOf, class CombineOf>
std::vector<cross_entropy::Forward> forward_of_slices(const CrossEntropyDrawn& d,
                                                      const std::vector<OwnColumns>& ranks,
                                                      const PartialOf& partial, const CombineOf& combine) {
  std::vector<cross_entropy::Partial> parts;
  for (const OwnColumns& own : ranks) parts.push_back(partial(own.logits(), own.targets, {}));
  at::Tensor top = parts[0].top;
  for (const auto& part : parts) top = at::maximum(top, part.top);
  for (auto& part : parts) cross_entropy::rescale(part, top);
  at::Tensor sums = parts[0].sums.clone();
  for (std::size_t r = 1; r < parts.size(); ++r) sums.add_(parts[r].sums);
  std::vector<cross_entropy::Forward> out;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    parts[r].sums.copy_(sums);
    out.push_back(combine(parts[r], ranks[r].targets, d.normalizer, d.z));
  }
  return out;
}

/// 1 to 4 ranks against the reference: loss, z-loss and lse on every rank, and the gradient of each slice.
/// One rank that holds all columns is as near to it, so the two are compared with both bounds.
inline void cross_entropy_slices_match_reference(at::Device device) {
  const bool wide = *rc::gen::arbitrary<bool>();
  CrossEntropyDrawn d(tests::draw_dtype(), device,
                      wide ? *rc::gen::inRange<Index>(200, 450) : tests::draw_extent(device, 12, 5000));
  const Index ranks = *rc::gen::inRange<Index>(1, 5), part = (d.V + ranks - 1) / ranks;
  // Targets that lie 100 below a slice: there their place is -100, and they are not ignored.
  for (Index r = 1; r < ranks; ++r)
    if (const Index trap = r * part - 100; trap >= 0 && trap < d.V)
      d.targets[static_cast<std::size_t>(*rc::gen::inRange<Index>(0, d.N))] = trap;
  const auto slices = sliced(d, ranks);

  const auto expected = reference::cross_entropy::forward(exact(d.logits), d.targets, d.normalizer, d.z);
  const auto gradient =
      reference::cross_entropy::backward(1.0, exact(d.logits), d.targets, expected.lse, d.normalizer, d.z);
  const CrossEntropyBounds bounds{d, expected.lse, static_cast<double>(ranks)};
  const auto with_one_rank = [](const std::vector<double>& sliced, const std::vector<double>& whole) {
    return tests::each(static_cast<Index>(whole.size()), [&](Index i) {
      return sliced[static_cast<std::size_t>(i)] + whole[static_cast<std::size_t>(i)];
    });
  };
  const CrossEntropyBounds of_one{d, expected.lse};
  const at::Tensor targets = tests::integers(d.targets).to(device), whole = d.logits.to(device, false, true);
  const auto one = cross_entropy::forward(whole, targets, d.normalizer, d.z);
  cross_entropy::backward(whole, targets, one.lse, d.normalizer, d.z);

  for (bool generic : tests::forms(device)) {
    RC_LOG() << (generic ? "aten, " : "op, ") << ranks << " ranks of " << part << " columns of " << d.V
             << "\n";
    const auto outs =
        generic ? forward_of_slices(d, slices, cross_entropy::aten::partial, cross_entropy::aten::combine)
                : forward_of_slices(d, slices, cross_entropy::partial, cross_entropy::combine);
    std::vector<at::Tensor> gradients;
    for (std::size_t r = 0; r < outs.size(); ++r) {
      const auto& out = outs[r];
      RC_ASSERT(out.loss.scalar_type() == at::kDouble && out.lse.scalar_type() == tests::math_of(d.type));
      ASSAY_RC_CLOSE(values(out.lse), values(expected.lse), bounds.of_all_lse());
      ASSAY_RC_CLOSE(values(out.loss), scalar_value(expected.cross_entropy), scalar_bound(bounds.of_loss()));
      ASSAY_RC_CLOSE(values(out.z_loss), scalar_value(expected.z_loss), scalar_bound(bounds.of_z_loss()));
      ASSAY_RC_CLOSE(values(out.lse), values(one.lse), with_one_rank(bounds.lse_errors, of_one.lse_errors));
      ASSAY_RC_CLOSE(values(out.loss), values(one.loss),
                     with_one_rank({bounds.of_loss()}, {of_one.of_loss()}));
      const OwnColumns& own = slices[r];
      const at::Tensor rows = own.whole.clone(), logits = rows.narrow(1, 0, own.count);
      RC_ASSERT((generic ? cross_entropy::aten::backward : cross_entropy::backward)(
                    logits, own.targets, out.lse, d.normalizer, d.z)
                    .is_same(logits));
      RC_ASSERT(rows.narrow(1, own.count, own.pad).eq(100).all().item<bool>());
      gradients.push_back(logits);
    }
    const at::Tensor ours = at::cat(gradients, 1);
    const auto allowed = bounds.of_gradient(gradient);
    const auto result = tests::close(values(ours), values(gradient), allowed, true);
    if (!result) RC_FAIL(std::string(result.message()));
    const auto beside =
        tests::close(values(ours), values(whole),
                     with_one_rank(allowed.absolute, of_one.of_gradient(gradient).absolute), true);
    if (!beside) RC_FAIL(std::string(beside.message()));
  }
}

/// One rank that holds every column gives the bits of forward, of rows that lie alike.
inline testing::AssertionResult one_slice_has_the_bits_of_forward(at::Device device) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor logits = tests::normal({97, 1003}, 5, type, 3).to(device);
    reference::Ids ids;
    for (Index n = 0; n < 97; ++n) ids.push_back(n % 5 ? n * 31 % 1003 : -100);
    const at::Tensor targets = tests::integers(ids).to(device);
    const auto forward = cross_entropy::forward(logits, targets, 60, 1e-3);
    auto own = cross_entropy::partial(logits, own_ids(targets, 0, 1003));
    cross_entropy::rescale(own, own.top.clone());
    const auto combined = cross_entropy::combine(own, targets, 60, 1e-3);
    if (!tests::same_bits(forward.lse, combined.lse) || !tests::same_bits(forward.loss, combined.loss) ||
        !tests::same_bits(forward.z_loss, combined.z_loss))
      return testing::AssertionFailure() << type;
  }
  return testing::AssertionSuccess();
}

}  // namespace assay::impl::parity
