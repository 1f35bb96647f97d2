// labels: unit
#include "reference/tensor.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::reference::tensor_test {
namespace {

TEST(TensorReference, StoresRowMajorAndStartsAtZero) {
  Tensor<double> x({2, 3});
  x(1, 2) = 5;
  EXPECT_EQ(x[5], 5);
  EXPECT_EQ(x.flat().sum(), 5);
  EXPECT_EQ(x.extent(-1), 3);
}

TEST(TensorReference, C1RefusesANegativeExtent) {
  EXPECT_THROW(Tensor<double>({2, -1}), SpecError);
  EXPECT_EQ(Tensor<double>({2, 0}).size(), 0);
}

TEST(TensorReference, C2RefusesAnotherElementCount) {
  EXPECT_THROW(Tensor<double>({2, 2}, {1, 2, 3}), SpecError);
  EXPECT_THROW(Tensor<double>({2, 2}).reshaped({3}), SpecError);
  EXPECT_EQ(Tensor<double>({2, 2}, {1, 2, 3, 4}).reshaped({4})[3], 4);
}

TEST(TensorReference, C3RefusesAnIndexOutsideTheShape) {
  const Tensor<double> x({2, 3});
  EXPECT_THROW(x(2, 0), SpecError);
  EXPECT_THROW(x(0, 3), SpecError);
  EXPECT_THROW(x(0, -1), SpecError);
  EXPECT_THROW(x(0), SpecError);
  EXPECT_NO_THROW(x(1, 2));
}

}  // namespace
}  // namespace assay::reference::tensor_test
