// labels: unit property golden
#include "reference/ops/clip_grad_norm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::clip_grad_norm_test {
namespace {

using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

template <class S>
clip_grad_norm::Clipped clip(std::vector<Tensor<S>>& gradients, double max_norm) {
  std::vector<Tensor<S>*> pointers;
  for (Tensor<S>& gradient : gradients) pointers.push_back(&gradient);
  return clip_grad_norm::clip(pointers, max_norm);
}

std::vector<Tensor<double>> draw_gradients() {
  std::vector<Tensor<double>> gradients;
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const auto sizes = *rc::gen::container<std::vector<Index>>(rc::gen::inRange<Index>(1, 9));
  for (Index size : sizes) gradients.push_back(tests::normal({size}, seed + gradients.size()));
  return gradients;
}

tests::Values scalar(double value) { return {{1}, {value}}; }

TEST(ClipGradNormReference, GivesTheSpecExample) {
  std::vector<Tensor<double>> gradients{Tensor<double>({1}, {3}), Tensor<double>({1, 2}, {0, -4})};
  const auto unclipped = gradients;
  EXPECT_EQ(clip(gradients, 10).coefficient, 1);
  ASSAY_EXPECT_CLOSE(values(gradients[1]), values(unclipped[1]), Allowed::exact());
  const auto clipped = clip(gradients, 2.5);
  EXPECT_EQ(clipped.norm, 5);
  EXPECT_DOUBLE_EQ(clipped.coefficient, 2.5 / 5.000001);
  ASSAY_EXPECT_CLOSE(values(gradients[0]), (tests::Values{{1}, {1.4999997}}), Allowed::relative(1e-12));
  ASSAY_EXPECT_CLOSE(values(gradients[1]), (tests::Values{{1, 2}, {0, -1.9999996}}),
                     Allowed::relative(1e-12));
}

TEST(ClipGradNormReference, MatchesTorch) {
  for (const char* name : {"clipped", "not_clipped", "small_norm"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/clip_grad_norm/") + name + ".json");
    std::vector<Tensor<double>> gradients;
    for (const char* key : {"gradient.0", "gradient.1", "gradient.2"})
      gradients.push_back(tests::tensor(golden.tensor(key)));
    const auto clipped = clip(gradients, golden.scalar("max_norm"));
    ASSAY_EXPECT_CLOSE(scalar(clipped.norm), scalar(golden.scalar("norm")), Allowed::relative(1e-10));
    for (std::size_t i = 0; i < gradients.size(); ++i)
      ASSAY_EXPECT_CLOSE(values(gradients[i]), golden.tensor("clipped." + std::to_string(i)),
                         Allowed::relative(1e-10));
  }
}

TEST(ClipGradNormReference, C1RejectsALimitThatIsNotPositive) {
  std::vector<Tensor<double>> gradients{tests::normal({3}, 1)};
  EXPECT_THROW(clip(gradients, 0), SpecError);
  ASSAY_EXPECT_CLOSE(values(gradients[0]), values(tests::normal({3}, 1)), Allowed::exact());
}

TEST(ClipGradNormReference, C2NamesTheTensorWithoutAFiniteNormAndChangesNothing) {
  for (double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e200}) {
    std::vector<Tensor<double>> gradients{tests::normal({3}, 1), Tensor<double>({2}, {1, bad}),
                                          tests::normal({3}, 2)};
    try {
      clip(gradients, 1);
      FAIL() << "accepted " << bad;
    } catch (const SpecError& error) {
      EXPECT_EQ(error.label(), "clip_grad_norm_c2");
      EXPECT_NE(std::string(error.what()).find("gradient 1"), std::string::npos) << error.what();
    }
    ASSAY_EXPECT_CLOSE(values(gradients[0]), values(tests::normal({3}, 1)), Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(gradients[2]), values(tests::normal({3}, 2)), Allowed::exact());
  }
}

TEST(ClipGradNormReference, NoGradientsHaveNormZero) {
  std::vector<Tensor<double>> none;
  EXPECT_EQ(clip(none, 1).norm, 0);
  EXPECT_EQ(clip(none, 1).coefficient, 1);
}

RC_GTEST_PROP(ClipGradNormReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  std::vector<Tensor<Counted>> gradients;
  Index entries = 0;
  for (const auto& gradient : draw_gradients()) {
    gradients.push_back(tests::counted(gradient));
    entries += gradient.size();
  }
  RC_ASSERT(tests::operations_of([&] { clip(gradients, 0.5); }) ==
            spec::clip_grad_norm::clip_flops(entries).vector);
}

RC_GTEST_PROP(ClipGradNormReference, AClippedNormIsWithinTheLimitAndClippingAgainChangesOnlyTheLastDigits,
              ()) {
  auto gradients = draw_gradients();
  const double max_norm = *rc::gen::element(1e-3, 0.5, 2.0, 1e3);
  const auto first = clip(gradients, max_norm);
  const auto once = gradients;
  const auto second = clip(gradients, max_norm);
  RC_ASSERT(second.norm <= max_norm);
  // norm * max / (norm + 1e-6) is below max by a fraction of 1e-6 / norm, and the second coefficient adds
  // 1e-6 again: it is below 1 only where max_norm < norm, and then by less than 1e-6 / max_norm.
  RC_ASSERT(second.coefficient <= 1 && second.coefficient > 1 - 1e-6 / max_norm);
  RC_ASSERT(first.norm + 1e-6 > max_norm || first.coefficient == 1);
  for (std::size_t i = 0; i < once.size(); ++i)
    RC_ASSERT(((gradients[i].flat() - once[i].flat()).abs() <= 1e-6 / max_norm * once[i].flat().abs()).all());
}

RC_GTEST_PROP(ClipGradNormReference, NormIsThatOfOneLongVectorAndScalesWithIt, ()) {
  auto gradients = draw_gradients();
  double square = 0;
  Index entries = 1;
  for (const auto& gradient : gradients) square += gradient.flat().square().sum(), entries += gradient.size();
  auto doubled = gradients;
  for (auto& gradient : doubled) gradient.flat() *= 2;  // a power of two rounds nothing
  const double norm = clip(gradients, 1e6).norm;
  ASSAY_RC_CLOSE(scalar(norm), scalar(std::sqrt(square)),
                 Allowed::relative(2 * gamma(static_cast<double>(entries) + 2, u)));
  RC_ASSERT(clip(doubled, 1e6).norm == 2 * norm);
}

RC_GTEST_PROP(ClipGradNormReference, KeepsTheDirection, ()) {
  auto gradients = draw_gradients();
  const auto before = gradients;
  const double coefficient = clip(gradients, 0.25).coefficient;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    RC_ASSERT((gradients[i].flat() == coefficient * before[i].flat()).all());
}

}  // namespace
}  // namespace assay::reference::clip_grad_norm_test
