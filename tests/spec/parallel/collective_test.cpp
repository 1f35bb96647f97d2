// labels: unit
#include "spec/parallel/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace assay::spec::collective_test {
namespace {

TEST(CollectiveSpec, EachHasARowAndANameOfItsOwn) {
  std::set<std::string_view> names, words;
  for (std::size_t i = 0; i < collectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(facts_of(collective).collective, collective);
    names.insert(to_string(collective)), words.insert(facts_of(collective).words);
  }
  EXPECT_EQ(names.size(), collectives);
  EXPECT_EQ(words.size(), collectives);
}

/// What a ring sends is a share of a whole buffer; sums are moved by rings alone.
TEST(CollectiveSpec, RingsMoveBuffersThatCount) {
  EXPECT_EQ(std::set(ring_collectives.begin(), ring_collectives.end()),
            (std::set{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                      Collective::all_to_all}));
  for (const CollectiveFacts& each : collective_table) {
    EXPECT_EQ(each.ring > 0, each.counted == Counted::input || each.counted == Counted::output) << each.name;
    EXPECT_TRUE(each.ring > 0 || !each.reduces) << each.name;
  }
}

/// The words of messages are the names of the library, as they are written in English.
TEST(CollectiveSpec, WordsAreNamesWithHyphens) {
  for (const Collective each : ring_collectives) {
    std::string name(to_string(each));
    std::ranges::replace(name, '_', '-');
    EXPECT_EQ(facts_of(each).words, name);
  }
}

}  // namespace
}  // namespace assay::spec::collective_test
