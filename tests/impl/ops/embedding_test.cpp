// labels: parity property
#include "impl/ops/embedding/embedding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/embedding_parity.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::embedding_test {
namespace {

using reference::Index;

RC_GTEST_PROP(EmbeddingImpl, MatchesReference, ()) { parity::embedding_matches_reference(at::kCPU); }

RC_GTEST_PROP(EmbeddingImpl, SlicesMatchReference, ()) { parity::embedding_slices_match_reference(at::kCPU); }

TEST(EmbeddingImpl, ForeignIdsTouchNoRow) { EXPECT_TRUE(parity::foreign_ids_touch_no_row(at::kCPU)); }

TEST(EmbeddingImpl, SumsInTheSameOrderOnAnyNumberOfThreads) {
  reference::Ids ids;
  for (Index n = 0; n < 1000; ++n) ids.push_back(n * n % 17);
  const at::Tensor dy = tests::normal({1000, 100}, 1, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor dtable = at::zeros({17, 100});
    embedding::backward(dy, tests::integers(ids), dtable);
    return std::vector{dtable, embedding::forward(dtable, tests::integers(ids))};
  }));
}

TEST(EmbeddingImpl, C1RejectsAnIdOutsideTheTable) {
  for (Index id : {-2, 3})
    EXPECT_EQ(tests::refusal([&] {
                embedding::forward(at::ones({3, 2}), tests::integers({0, id}));
              }),
              "embedding_c1");
}

TEST(EmbeddingImpl, C2RejectsRowsWithoutEntries) {
  EXPECT_EQ(tests::refusal([] {
              embedding::forward(at::ones({2, 0}), tests::integers({0}));
            }),
            "embedding_c2");
}

TEST(EmbeddingImpl, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] {
              embedding::backward(at::ones({2, 2}), tests::integers({0}), at::ones({3, 2}));
            }),
            "embedding_c3");
}

}  // namespace
}  // namespace assay::impl::embedding_test
