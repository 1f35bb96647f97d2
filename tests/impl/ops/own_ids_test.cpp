// labels: unit
#include "impl/ops/own_ids.hpp"

#include <gtest/gtest.h>

#include "tests/support/tensors.hpp"

namespace assay::impl::own_ids_test {
namespace {

TEST(OwnIds, OwnForeignAndIgnoredAreToldApart) {
  // The slice [200, 203). In it 100 would be at -100 and 199 at -1: both are foreign like any other.
  EXPECT_TRUE(at::equal(own_ids(tests::integers({200, 202, 203, 199, 100, 0, -100}), 200, 3),
                        tests::integers({0, 2, -1, -1, -1, -1, -100})));
  EXPECT_TRUE(at::equal(own_ids(tests::integers({0, 2, -100}), 0, 3), tests::integers({0, 2, -100})));
}

TEST(OwnIds, AnEmptySliceOwnsNothing) {
  EXPECT_TRUE(at::equal(own_ids(tests::integers({4, 5, -100}), 5, 0), tests::integers({-1, -1, -100})));
}

TEST(OwnIds, KeepsShapeAndArgument) {
  const at::Tensor ids = tests::integers({0, 1, 2, 3}).view({2, 2}), before = ids.clone();
  EXPECT_EQ(own_ids(ids, 2, 2).sizes(), ids.sizes());
  EXPECT_TRUE(at::equal(ids, before));
}

}  // namespace
}  // namespace assay::impl::own_ids_test
