// labels: unit
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

namespace assay::tests::tensors_test {
namespace {

TEST(Tensors, ValuesOfEveryDtypeAreExact) {
  const at::Tensor ones = at::full({2, 3}, 1.0 / 3, at::kBFloat16);
  EXPECT_EQ(exact(ones).shape(), (reference::Shape{2, 3}));
  EXPECT_EQ(exact(ones)(1, 2), 0.333984375);  // 171 * 2^-9: 8 significant bits
  EXPECT_EQ(values(at::tensor({1.0, -2.5})).data, (std::vector<double>{1.0, -2.5}));
}

TEST(Tensors, RoundedRoundsToNearest) {
  const reference::Tensor<double> x({2}, {1 + 0x1p-8, 1 + 0x1.8p-8});  // a tie, and just above one
  EXPECT_EQ(exact(rounded(x, at::kBFloat16))[0], 1.0);
  EXPECT_EQ(exact(rounded(x, at::kBFloat16))[1], 1 + 0x1p-7);
  EXPECT_TRUE(same_bits(rounded(x, at::kDouble), at::tensor({1 + 0x1p-8, 1 + 0x1.8p-8}, at::kDouble)));
}

TEST(Tensors, ReadsAViewInItsOwnOrder) {
  const at::Tensor transposed = at::arange(6, at::kDouble).view({2, 3}).t();
  EXPECT_EQ(values(transposed).data, (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Tensors, SameBitsTellsApartWhatComparesEqual) {
  EXPECT_FALSE(same_bits(at::zeros({1}), -at::zeros({1})));
  EXPECT_FALSE(same_bits(at::zeros({1}), at::zeros({1}, at::kDouble)));
  EXPECT_FALSE(same_bits(at::zeros({1, 2}), at::zeros({2, 1})));
  EXPECT_TRUE(same_bits(at::full({2}, std::nan("")), at::full({2}, std::nan(""))));
}

TEST(Tensors, RepeatableSeesResultsThatChange) {
  int calls = 0;
  EXPECT_FALSE(repeatable([&] { return std::vector{at::scalar_tensor(++calls)}; }));
  EXPECT_FALSE(repeatable([&] { return std::vector{at::scalar_tensor(at::get_num_threads())}; }));
  EXPECT_TRUE(repeatable([&] { return std::vector{at::ones({3})}; }));
}

TEST(Tensors, RoundingOfStorageIsAddedToThatOfArithmetic) {
  const Rounding rounding = rounding_of(at::kBFloat16);
  EXPECT_EQ(rounding.math, 0x1p-24);
  EXPECT_DOUBLE_EQ(rounding.stored(-2, 1), 1 + 3 * 0x1p-8);
  EXPECT_EQ(rounding_of(at::kFloat).stored(-2, 1), 1);
}

TEST(Tensors, RefusalNamesTheLabel) {
  EXPECT_EQ(refusal([] { throw SpecError("rope_c1", "E=3"); }), "rope_c1");
  EXPECT_EQ(refusal([] {}), "accepted");
}

TEST(Tensors, AutogradGivesTheGradientOfASquare) {
  const at::Tensor x = leaf(at::tensor({3.0}, at::kDouble));
  EXPECT_EQ(exact(autograd(x * x, at::tensor({2.0}, at::kDouble), {x})[0])[0], 12.0);
}

}  // namespace
}  // namespace assay::tests::tensors_test
