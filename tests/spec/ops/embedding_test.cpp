// labels: unit
#include "spec/ops/embedding/embedding.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "spec/error.hpp"

namespace assay::spec::embedding_test {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(EmbeddingSpec, C1RejectsAnIdOutsideTheTable) {
  EXPECT_NO_THROW(embedding::check({.N = 2, .V = 5, .D = 3}, Ids{0, 4}));
  EXPECT_THROW(embedding::check({.N = 2, .V = 5, .D = 3}, Ids{-1, 0}), SpecError);
  try {
    embedding::check({.N = 2, .V = 5, .D = 3}, Ids{0, 5});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "embedding_c1: id 5 at 1 is not in [0, V=5)");
  }
}

TEST(EmbeddingSpec, C2RejectsAnEmptyTable) {
  EXPECT_THROW(embedding::check({.N = 0, .V = 0, .D = 3}, Ids{}), SpecError);
  EXPECT_THROW(embedding::check({.N = 0, .V = 5, .D = 0}, Ids{}), SpecError);
  EXPECT_THROW(embedding::check({.N = -1, .V = 5, .D = 3}, Ids{}), SpecError);
  EXPECT_NO_THROW(embedding::check({.N = 0, .V = 5, .D = 3}, Ids{}));
}

TEST(EmbeddingSpec, ASliceMayBeEmptyAndItsIdsForeign) {
  const auto check = [](std::int64_t V, Ids ids) {
    embedding::check({.N = 2, .V = V, .D = 3}, ids, Vocabulary::slice);
  };
  EXPECT_NO_THROW(check(5, {foreign, 4}));
  EXPECT_NO_THROW(check(0, {foreign, foreign}));
  EXPECT_THROW(check(-1, {foreign, foreign}), SpecError);
  EXPECT_THROW(check(0, {foreign, 0}), SpecError);
  try {
    check(5, {0, -2});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "embedding_c1: id -2 at 1 is not in [0, V=5) nor foreign (-1)");
  }
}

TEST(EmbeddingSpec, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_NO_THROW(embedding::check_upstream({.N = 2, .V = 5, .D = 3}, 6));
  EXPECT_THROW(embedding::check_upstream({.N = 2, .V = 5, .D = 3}, 15), SpecError);
}

TEST(EmbeddingSpec, CountsBytesOfIdsAndRows) {
  // 4 ids of 8 bytes, 4 rows of 3 read and written in bf16.
  EXPECT_EQ(embedding::forward_bytes({.N = 4, .V = 10, .D = 3}, 2, 8), Count(80));
  // 4 ids, 12 entries of dy in bf16, 30 of dtable in fp32.
  EXPECT_EQ(embedding::backward_bytes({.N = 4, .V = 10, .D = 3}, 2, 8, 4), Count(176));
}

}  // namespace
}  // namespace assay::spec::embedding_test
