// labels: parity property
#include "impl/ops/cross_entropy/cross_entropy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/cross_entropy_parity.hpp"
#include "tests/impl/ops/parity/cross_entropy_slices_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::cross_entropy_test {
namespace {

using reference::Index;
using tests::exact;
using tests::values;

RC_GTEST_PROP(CrossEntropyImpl, MatchesReference, ()) { parity::cross_entropy_matches_reference(at::kCPU); }

RC_GTEST_PROP(CrossEntropyImpl, SlicesMatchReferenceAndOneRank, ()) {
  parity::cross_entropy_slices_match_reference(at::kCPU);
}

TEST(CrossEntropyImpl, OneSliceHasTheBitsOfForward) {
  EXPECT_TRUE(parity::one_slice_has_the_bits_of_forward(at::kCPU));
}

RC_GTEST_PROP(CrossEntropyImpl, AgreesWithAutograd, ()) {
  const parity::CrossEntropyDrawn d(at::kDouble, at::kCPU);
  const at::Tensor targets = tests::integers(d.targets), leaf = tests::leaf(d.logits),
                   lse = at::logsumexp(leaf, {1});
  const at::Tensor loss =
      at::cross_entropy_loss(leaf, targets, {}, at::Reduction::Sum, -100) / d.normalizer +
      at::where(targets.ne(-100), lse.square(), at::zeros_like(lse)).sum() * (d.z / d.normalizer);
  const at::Tensor theirs = tests::autograd(loss, at::ones({}, at::kDouble), {leaf})[0];
  const at::Tensor ours = cross_entropy::backward(
      d.logits.clone(), targets, cross_entropy::forward(d.logits, targets, d.normalizer, d.z).lse,
      d.normalizer, d.z);
  const auto result =
      tests::close(values(ours), values(theirs),
                   parity::CrossEntropyBounds{d, exact(lse)}.of_gradient(exact(theirs)), true);
  if (!result) RC_FAIL(std::string(result.message()));
}

TEST(CrossEntropyImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor logits = tests::normal({700, 50}, 1, at::kFloat);
  reference::Ids targets;
  for (Index n = 0; n < 700; ++n) targets.push_back(n % 7 ? n % 50 : -100);
  EXPECT_TRUE(tests::repeatable([&] {
    const auto out = cross_entropy::forward(logits, tests::integers(targets), 600, 1e-3);
    return std::vector{out.loss, out.z_loss, out.lse,
                       cross_entropy::backward(logits.clone(), tests::integers(targets), out.lse, 600, 1e-3)};
  }));
}

// One after the other they are the loss that forward sums up, and an ignored row has none.
TEST(CrossEntropyImpl, LossesOfRowsAddUpToTheLoss) {
  const at::Tensor logits = tests::normal({40, 9}, 3, at::kDouble);
  reference::Ids ids;
  for (Index n = 0; n < 40; ++n) ids.push_back(n % 7 ? n % 9 : -100);
  const at::Tensor targets = tests::integers(ids);
  const cross_entropy::Partial sums = cross_entropy::partial(logits, targets);
  const at::Tensor losses =
      cross_entropy::row_losses(cross_entropy::combine(sums, targets, 1, 0).lse, sums.of_target, targets);
  const double* loss = losses.const_data_ptr<double>();
  double sum = 0;
  for (std::size_t n = 0; n < ids.size(); ++n) {
    EXPECT_EQ(loss[n] == 0, ids[n] == -100) << n;
    sum += loss[n];
  }
  EXPECT_EQ(sum, cross_entropy::forward(logits, targets, 1, 0).loss.item<double>());
}

TEST(CrossEntropyImpl, ConstraintsAreChecked) {
  const auto forward = [](reference::Shape shape, reference::Ids targets, double normalizer, double z) {
    return tests::refusal(
        [&] { cross_entropy::forward(at::ones(shape), tests::integers(targets), normalizer, z); });
  };
  EXPECT_EQ(forward({2, 3}, {2, -100}, 1, 0), "accepted");
  EXPECT_EQ(forward({2, 3}, {2}, 1, 0), "cross_entropy_c1");
  EXPECT_EQ(forward({2, 3}, {2, 3}, 1, 0), "cross_entropy_c2");
  EXPECT_EQ(forward({2, 3}, {2, -1}, 1, 0), "cross_entropy_c2");
  EXPECT_EQ(forward({2, 3}, {2, 1}, 0, 0), "cross_entropy_c3");
  EXPECT_EQ(forward({2, 3}, {2, 1}, 1, -1), "cross_entropy_c4");
  EXPECT_EQ(forward({2, 0}, {-100, -100}, 1, 0), "cross_entropy_c5");
  EXPECT_EQ(tests::refusal([] {
              cross_entropy::forward(at::ones({1, 3}), tests::integers({2}), at::zeros({}, at::kDouble), 0);
            }),
            "cross_entropy_c3");
  // A slice may be empty, and its targets those of other ranks.
  const auto partial = [](reference::Shape shape, reference::Ids targets) {
    return tests::refusal([&] { cross_entropy::partial(at::ones(shape), tests::integers(targets)); });
  };
  EXPECT_EQ(partial({2, 3}, {-1, -100}), "accepted");
  EXPECT_EQ(partial({2, 0}, {-1, -100}), "accepted");
  EXPECT_EQ(partial({2, 3}, {2}), "cross_entropy_c1");
  EXPECT_EQ(partial({2, 3}, {2, 3}), "cross_entropy_c2");
  EXPECT_EQ(partial({2, 3}, {2, -2}), "cross_entropy_c2");
  EXPECT_THROW(Normalizer(at::ones({}, at::kFloat)), c10::Error);
  EXPECT_THROW(Normalizer(at::ones({2}, at::kDouble)), c10::Error);
}

}  // namespace
}  // namespace assay::impl::cross_entropy_test
