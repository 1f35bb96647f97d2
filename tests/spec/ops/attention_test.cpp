// labels: unit property
#include "spec/ops/attention/attention.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"

namespace assay::spec::attention_test {
namespace {

using Ids = std::vector<std::int64_t>;

const attention::Shape shape{.B = 2, .T = 3, .H = 4, .K = 2, .E = 5};

TEST(AttentionSpec, C1RejectsAnotherShape) {
  EXPECT_NO_THROW(attention::check_extents("k", {2, 3, 2, 5}, {2, 3, 2, 5}));
  try {
    attention::check_extents("k", {2, 3, 2, 4}, {2, 3, 2, 5});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "attention_c1: k is [2, 3, 2, 4], expected [2, 3, 2, 5]");
  }
}

TEST(AttentionSpec, C2RejectsKeyHeadsThatDoNotDivide) {
  EXPECT_NO_THROW(attention::check(shape, {}));
  EXPECT_THROW(attention::check({.B = 1, .T = 1, .H = 4, .K = 3, .E = 5}, {}), SpecError);
  EXPECT_THROW(attention::check({.B = 1, .T = 1, .H = 4, .K = 8, .E = 5}, {}), SpecError);
  EXPECT_THROW(attention::check({.B = 1, .T = 1, .H = 4, .K = 0, .E = 5}, {}), SpecError);
}

TEST(AttentionSpec, C3RejectsAnotherNumberOfDocuments) {
  EXPECT_NO_THROW(attention::check(shape, {Ids{0, 0, 1, 0, 0, 0}}));
  EXPECT_THROW(attention::check(shape, {Ids{0, 0, 1}}), SpecError);
}

TEST(AttentionSpec, C4RejectsADocumentThatComesBack) {
  EXPECT_NO_THROW(attention::check(shape, {Ids{5, 5, 7, 0, 1, 2}}));  // each sequence on its own
  try {
    attention::check(shape, {Ids{0, 0, 1, 0, 1, 0}});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "attention_c4: document 0 follows a larger one at token 2 of sequence 1");
  }
}

TEST(AttentionSpec, C5RejectsEmptyHeads) {
  EXPECT_THROW(attention::check({.B = 1, .T = 1, .H = 4, .K = 2, .E = 0}, {}), SpecError);
  EXPECT_THROW(attention::check({.B = 1, .T = 1, .H = 0, .K = 1, .E = 5}, {}), SpecError);
  EXPECT_THROW(attention::check({.B = -1, .T = 1, .H = 4, .K = 2, .E = 5}, {}), SpecError);
  EXPECT_NO_THROW(attention::check({.B = 1, .T = 0, .H = 4, .K = 2, .E = 5}, {}));
}

TEST(AttentionSpec, C6RejectsANegativeWindow) {
  EXPECT_NO_THROW(attention::check(shape, {.window = 0}));
  try {
    attention::check(shape, {.window = -1});
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "attention_c6: window=-1");
  }
}

TEST(AttentionSpec, AWindowLeavesOutThePairsBeforeIt) {
  // 5 tokens, the last 3 of each: 1 + 2 + 3 + 3 + 3.
  EXPECT_EQ(attention::document_pairs(5, 3), Count(12));
  EXPECT_EQ(attention::document_pairs(5, 1), Count(5));
  for (const std::int64_t window : {0, 5, 6}) EXPECT_EQ(attention::document_pairs(5, window), Count(15));
  EXPECT_EQ(attention::document_pairs(0, 3), Count(0));
}

TEST(AttentionSpec, BackwardOfTheModelIsTwiceForwardInMatmul) {
  // T = 3: 6 pairs a sequence. 4*H*E*P = 4*4*5*12.
  EXPECT_EQ(attention::forward_flops(shape, {}).matmul, Count(960));
  EXPECT_EQ(attention::backward_flops(shape, {}).matmul, Count(1920));
  EXPECT_EQ(attention::recomputed_flops(shape, {}).matmul, Count(480));
}

TEST(AttentionSpec, ValueHeadsMayHaveAnotherWidth) {
  attention::Shape narrow = shape;
  narrow.W = 2;
  EXPECT_EQ(narrow.value_dim(), 2);
  EXPECT_EQ(shape.value_dim(), 5);
  // 2*H*(E + W)*P = 2*4*7*12 and twice that; the scores again have E. Rows: 24.
  EXPECT_EQ(attention::forward_flops(narrow, {}), (Flops{672, 4 * 48 + 24 * 4}));
  EXPECT_EQ(attention::backward_flops(narrow, {}), (Flops{1344, 3 * 48 + 2 * 24 * 2}));
  EXPECT_EQ(attention::recomputed_flops(narrow, {}).matmul, Count(480));
  // q of 120, k of 60, y of 48 and v of 24 entries.
  EXPECT_EQ(attention::forward_bytes(narrow, 2, 4), Count(252 * 2 + 24 * 4));
  EXPECT_EQ(attention::backward_bytes(narrow, 2, 4), Count(2 * 252 * 2 + 24 * 4));
  narrow.W = -1;
  EXPECT_THROW(attention::check(narrow, {}), SpecError);
}

TEST(AttentionSpec, CountsBytesOfEveryTensorOnce) {
  // q, y of 120 and k, v of 60 entries in bf16; 24 lse in fp32.
  EXPECT_EQ(attention::forward_bytes(shape, 2, 4), Count(816));
  EXPECT_EQ(attention::backward_bytes(shape, 2, 4), Count(1536));
}

RC_GTEST_PROP(AttentionSpec, VisiblePairsAreThoseOfTheMask, ()) {
  const std::int64_t S = *rc::gen::inRange(1, 9), first = *rc::gen::inRange<std::int64_t>(0, 2 * S);
  const bool behind = first >= S;  // no query has a key of its own
  const std::int64_t T = *rc::gen::inRange<std::int64_t>(0, behind ? 5 : S - first + 1);
  const attention::Shape drawn{.B = *rc::gen::inRange(0, 4), .T = T, .H = 1, .K = 1, .E = 1, .S = S};
  Ids documents;
  for (std::int64_t n = 0; n < drawn.B * S; ++n)
    documents.push_back(n % S == 0 ? 0 : documents.back() + *rc::gen::inRange(0, 2));
  if (behind) documents.clear();
  std::int64_t window = *rc::gen::inRange(0, 11);
  if (behind && window > 0) window += first + T - S;
  const attention::Mask mask{documents, window, first};
  attention::check(drawn, mask);
  std::int64_t pairs = 0, pairs_in_sequences = 0;
  for (std::int64_t b = 0; b < drawn.B; ++b) {
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t s = 0; s < S; ++s) {
        const std::int64_t at = first + t;
        const bool near = s <= at && (window == 0 || at - s < window),
                   seen = near && (behind || documents[static_cast<std::size_t>(b * S + s)] ==
                                                 documents[static_cast<std::size_t>(b * S + at)]);
        RC_ASSERT(seen == (s <= attention::last_visible(drawn, mask, t) &&
                           s >= attention::first_visible(drawn, mask, b, t)));
        pairs += seen, pairs_in_sequences += near;
      }
    }
  }
  RC_ASSERT(attention::visible_pairs(drawn, mask) == Count(pairs));
  RC_ASSERT(attention::visible_pairs(drawn, {.window = window, .first = first}) == Count(pairs_in_sequences));
}

/// 2 sequences of 3 queries at 4, 5, 6 among 7 keys: 5 + 6 + 7 pairs; among 5 keys 5 each.
TEST(AttentionSpec, ASpanByHand) {
  attention::Shape span = shape;
  span.S = 7;
  EXPECT_EQ(attention::visible_pairs(span, {.first = 4}), Count(36));
  EXPECT_EQ(attention::visible_pairs(span, {.window = 2, .first = 4}), Count(12));
  // q and y of 120 entries, k and v of 2*7*2*5.
  EXPECT_EQ(attention::forward_bytes(span, 2, 4), Count((240 + 280) * 2 + 24 * 4));
  span.S = 5;
  EXPECT_EQ(attention::visible_pairs(span, {.first = 4}), Count(30));
  EXPECT_EQ(attention::forward_flops(span, {.first = 4}).matmul, Count(2 * 4 * 10 * 30));
}

TEST(AttentionSpec, C7RefusesAQueryThatSeesNoKey) {
  const auto refused = [](attention::Shape of, const attention::Mask& mask) {
    try {
      attention::check(of, mask);
      return std::string("accepted");
    } catch (const SpecError& error) {
      return std::string(error.what());
    }
  };
  attention::Shape span = shape;
  span.S = 7;
  EXPECT_EQ(refused(span, {.first = 4}), "accepted");
  EXPECT_EQ(refused(span, {.first = 9}), "accepted");
  EXPECT_EQ(refused(span, {.first = -1}), "attention_c7: queries at -1 to 1, keys at 0 to 6, window=0");
  EXPECT_EQ(refused(span, {.window = 5, .first = 8}), "accepted");  // the last at 10 sees key 6
  EXPECT_EQ(refused(span, {.window = 4, .first = 8}),
            "attention_c7: queries at 8 to 10, keys at 0 to 6, window=4");
  const Ids documents(14, 0);
  EXPECT_EQ(refused(span, {documents, 0, 4}), "accepted");
  EXPECT_EQ(refused(span, {documents, 0, 5}),
            "attention_c7: queries at 5 to 7, keys at 0 to 6, window=0, with documents");
}

}  // namespace
}  // namespace assay::spec::attention_test
