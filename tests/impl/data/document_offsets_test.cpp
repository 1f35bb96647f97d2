// labels: unit property
#include "impl/data/document_offsets.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "spec/memory/document_slots.hpp"
#include "spec/ops/attention/attention.hpp"

namespace assay::impl::data::document_offsets_test {
namespace {

using Numbers = std::vector<std::int32_t>;

TEST(DocumentOffsetsImpl, AreTheFirstTokensOfAllSequencesAndThenUnusedEntries) {
  // The second sequence goes on with the number at which the first ended, and is another document.
  const Numbers documents = {0, 0, 1, 1, 1, 4};
  EXPECT_EQ(document_offsets(documents, 3), (Numbers{0, 2, 3, 5, 6, 6, 6}));
  EXPECT_EQ(document_offsets(documents, 6), (Numbers{0, 2, 5, 6, 6, 6, 6}));
  EXPECT_EQ(document_offsets(Numbers{7}, 1), (Numbers{0, 1}));
  EXPECT_EQ(document_offsets({}, 4), (Numbers{0}));
  EXPECT_THROW(document_offsets(documents, 4), std::invalid_argument);
  EXPECT_THROW(document_offsets(documents, 0), std::invalid_argument);
}

struct Drawn {
  std::int64_t B = *rc::gen::inRange<std::int64_t>(1, 6), T = *rc::gen::inRange<std::int64_t>(1, 300);
  Numbers documents;
  Drawn() {
    const int rare = *rc::gen::element(1, 3, 40, 1000);  // a document a token, or hardly any
    for (std::int64_t n = 0; n < B * T; ++n) {
      const bool next = *rc::gen::inRange(0, rare) == 0;
      documents.push_back((n % T ? documents.back() : 0) + (next ? *rc::gen::inRange(1, 4) : 0));
    }
  }
};

RC_GTEST_PROP(DocumentOffsetsImpl, ATokensDocumentBeginsAtTheLastOffsetThatIsNotAfterIt, ()) {
  const Drawn d;
  const Numbers offsets = document_offsets(d.documents, d.T);
  const std::vector<std::int64_t> documents(d.documents.begin(), d.documents.end());
  const spec::attention::Shape shape{.B = d.B, .T = d.T, .H = 1, .K = 1, .E = 1};
  RC_ASSERT(offsets.front() == 0 && offsets.back() == d.B * d.T);
  for (std::int64_t n = 0; n < d.B * d.T; ++n) {
    const auto after = std::upper_bound(offsets.begin(), offsets.end(), static_cast<std::int32_t>(n));
    const std::int64_t b = n / d.T, first = spec::attention::first_visible(shape, {documents}, b, n % d.T);
    RC_ASSERT(*(after - 1) == b * d.T + first);
  }
}

RC_GTEST_PROP(DocumentOffsetsImpl, UnusedEntriesAreAtTheEndAndTheirNumberIsThatOfTheSpec, ()) {
  const Drawn d;
  const Numbers offsets = document_offsets(d.documents, d.T);
  const auto end = static_cast<std::int32_t>(d.B * d.T);
  const auto used = std::find(offsets.begin(), offsets.end(), end) - offsets.begin();
  for (std::ptrdiff_t i = 1; i <= used; ++i) {
    RC_ASSERT(offsets[static_cast<std::size_t>(i - 1)] < offsets[static_cast<std::size_t>(i)]);
    RC_ASSERT(offsets[static_cast<std::size_t>(i)] - offsets[static_cast<std::size_t>(i - 1)] <= d.T);
  }
  RC_ASSERT(std::count(offsets.begin(), offsets.end(), end) ==
            static_cast<std::ptrdiff_t>(offsets.size()) - used);
  RC_ASSERT(static_cast<std::int64_t>(offsets.size()) == spec::memory::document_slots(d.B, d.T, used) + 1);
}

}  // namespace
}  // namespace assay::impl::data::document_offsets_test
