// labels: unit property
#include "impl/data/batch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>

namespace assay::impl::data::batch_test {
namespace {

// Samples written out in the test.
class Listed : public SampleSource {
 public:
  explicit Listed(std::vector<std::vector<std::int32_t>> samples) : samples_(std::move(samples)) {}
  std::int64_t samples() const override { return static_cast<std::int64_t>(samples_.size()); }
  std::int64_t sequence_length() const override { return static_cast<std::int64_t>(samples_[0].size()) - 1; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override {
    check_request(sample, ids);
    std::copy_n(samples_[static_cast<std::size_t>(sample)].begin(), ids.size(), ids.begin());
  }
  std::string description() const override { return "listed"; }

 private:
  std::vector<std::vector<std::int32_t>> samples_;
};

TEST(BatchImpl, InputsAndTargetsAreTheSampleShiftedByOne) {
  const Listed source({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}});
  const MicroBatch batch = read_micro_batch(source, std::vector<std::int64_t>{2, 0}, std::nullopt);
  EXPECT_EQ(batch.B, 2);
  EXPECT_EQ(batch.T, 3);
  EXPECT_EQ(batch.inputs, (std::vector<std::int64_t>{9, 10, 11, 1, 2, 3}));
  EXPECT_EQ(batch.targets, (std::vector<std::int64_t>{10, 11, 12, 2, 3, 4}));
  EXPECT_EQ(batch.valid_tokens, 6);
  EXPECT_EQ(batch.sample_ids, (std::vector<std::int64_t>{2, 0}));
  EXPECT_TRUE(batch.documents.empty() && batch.positions.empty() && batch.document_offsets.empty());
}

TEST(BatchImpl, DocumentsBeginAfterTheirEndTokenAndMayBeEmpty) {
  // 0 ends a document. Row 0: "0", "7 0", "" + 0, "8 9"; row 1 ends with an end token; row 2 has none.
  const Listed source({{0, 7, 0, 0, 8, 9}, {1, 2, 3, 4, 0, 5}, {1, 2, 3, 4, 5, 0}});
  const MicroBatch batch = read_micro_batch(source, std::vector<std::int64_t>{0, 1, 2}, 0);
  EXPECT_EQ(batch.documents, (std::vector<std::int32_t>{0, 1, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.positions, (std::vector<std::int32_t>{0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(batch.document_offsets,
            (std::vector<std::int32_t>{0, 1, 3, 4, 5, 10, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15}));
  EXPECT_EQ(batch.valid_tokens, 15);  // the last token of a document predicts the first of the next
}

TEST(BatchImpl, DocumentsEndWhereTheDataSaysSo) {
  struct Ended final : Listed {
    using Listed::Listed;
    std::optional<std::vector<std::int64_t>> document_ends(std::int64_t sample) const override {
      return sample == 0 ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{};
    }
  };
  const Ended source({{5, 6, 0, 7, 8}, {1, 0, 2, 3, 4}});
  for (const std::optional<std::int64_t> token :
       {std::optional<std::int64_t>(), std::optional<std::int64_t>(0)}) {
    const MicroBatch batch = read_micro_batch(source, std::vector<std::int64_t>{0, 1}, token);
    EXPECT_EQ(batch.documents, (std::vector<std::int32_t>{0, 1, 1, 2, 0, 0, 0, 0}));
    EXPECT_EQ(batch.positions, (std::vector<std::int32_t>{0, 0, 1, 0, 0, 1, 2, 3}));
    EXPECT_EQ(batch.document_offsets, (std::vector<std::int32_t>{0, 1, 3, 4, 8, 8, 8, 8, 8}));
    EXPECT_EQ(batch.valid_tokens, 8);
  }
}

// What documents and positions are for: a token of position p has its p predecessors, and only those, in its
// document.
RC_GTEST_PROP(BatchImpl, DocumentsNeverFallAndPositionsCountFromTheirStart, ()) {
  const auto T = *rc::gen::inRange<std::size_t>(1, 20);
  const auto B = *rc::gen::inRange<std::size_t>(1, 4);
  std::vector<std::vector<std::int32_t>> rows;
  std::vector<std::int64_t> samples;
  for (std::size_t b = 0; b < B; ++b) {
    rows.push_back(*rc::gen::container<std::vector<std::int32_t>>(T + 1, rc::gen::inRange(0, 3)));
    samples.push_back(static_cast<std::int64_t>(b));
  }
  const MicroBatch batch = read_micro_batch(Listed(rows), samples, 0);
  RC_ASSERT(batch.documents.size() == B * T && batch.positions.size() == B * T);
  for (std::size_t b = 0; b < B; ++b) {
    const std::size_t row = b * T;
    RC_ASSERT(batch.documents[row] == 0 && batch.positions[row] == 0);
    for (std::size_t t = 1; t < T; ++t) {
      const bool begins = rows[b][t - 1] == 0;
      RC_ASSERT(batch.documents[row + t] == batch.documents[row + t - 1] + begins);
      RC_ASSERT(batch.positions[row + t] == (begins ? 0 : batch.positions[row + t - 1] + 1));
    }
  }
}

}  // namespace
}  // namespace assay::impl::data::batch_test
