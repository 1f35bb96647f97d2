// labels: parity property
#include "spec/memory/head.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/model/lm_head_parity.hpp"

namespace assay::impl::lm_head_test {
namespace {

RC_GTEST_PROP(LmHeadImpl, ChunksMatchReference, ()) { parity::lm_head_matches_reference(at::kCPU); }

RC_GTEST_PROP(LmHeadImpl, ChunksCoverTheTokensAndHoldNoMoreThanTheLimit, ()) {
  const auto N = *rc::gen::inRange<std::int64_t>(1, 100000), V = *rc::gen::inRange<std::int64_t>(1, 200000),
             limit = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 30);
  const std::int64_t rows = spec::memory::chunk_tokens(N, V, limit);
  RC_ASSERT(rows >= 1 && rows <= N);
  RC_ASSERT(rows * V <= limit || rows == 1);
}

TEST(LmHeadImpl, TheDemoHasOneChunkAndTheLargeModelsSeveral) {
  EXPECT_EQ(spec::memory::chunk_tokens(32 * 128, 256), 32 * 128);
  EXPECT_EQ(spec::memory::chunk_tokens(24 * 2048, 32000), 8192);
  EXPECT_EQ(spec::memory::chunk_tokens(22 * 2048, 151669), 1664);
}

TEST(LmHeadImpl, AVocabularyIsPaddedOnlyWhereItsRowsAreNotWholeAccesses) {
  EXPECT_EQ(spec::memory::padded_vocabulary(32000, 2), 32000);
  EXPECT_EQ(spec::memory::padded_vocabulary(128256, 2), 128256);
  EXPECT_EQ(spec::memory::padded_vocabulary(151643, 2), 151680);
  EXPECT_EQ(spec::memory::padded_vocabulary(50257, 2), 50304);
  EXPECT_EQ(spec::memory::padded_vocabulary(7, 8), 128);
  EXPECT_EQ(spec::memory::padded_vocabulary(8, 8), 8);
}

}  // namespace
}  // namespace assay::impl::lm_head_test
