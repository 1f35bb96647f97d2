// labels: gpu parity property
#include "impl/ops/embedding/embedding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/ops/parity/embedding_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_embedding_test {
namespace {

TEST(EmbeddingCuda, MatchesReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::embedding_matches_reference(at::kCUDA); }));
}

TEST(EmbeddingCuda, SlicesMatchReference) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] { parity::embedding_slices_match_reference(at::kCUDA); }));
}

TEST(EmbeddingCuda, ForeignIdsTouchNoRow) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(parity::foreign_ids_touch_no_row(at::kCUDA));
}

TEST(EmbeddingCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  reference::Ids ids;
  for (std::int64_t n = 0; n < 5000; ++n) ids.push_back(n * n % 17);
  const at::Tensor dy = tests::normal({5000, 104}, 1, at::kBFloat16).to(at::kCUDA),
                   id = tests::integers(ids).to(at::kCUDA);
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor dtable = at::zeros({17, 104}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
    embedding::backward(dy, id, dtable);
    return std::vector{dtable, embedding::forward(dtable, id)};
  }));
}

}  // namespace
}  // namespace assay::impl::cuda_embedding_test
