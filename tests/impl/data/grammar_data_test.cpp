// labels: unit property
#include "impl/data/grammar_data.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "spec/grammar/demo_grammar.hpp"
#include "tests/impl/data/token_bytes.hpp"

namespace assay::impl::data::grammar_data_test {
namespace {

RC_GTEST_PROP(GrammarDataImpl, ASampleIsTheWindowOfItsNumber, (std::uint64_t seed)) {
  const auto T = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto sample = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
  const GrammarData data(seed, T, std::int64_t{1} << 40);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(T + 1));
  data.read(sample, ids);
  const std::string text = spec::grammar::demo().window(seed, static_cast<std::uint64_t>(sample), T + 1);
  RC_ASSERT(std::equal(ids.begin(), ids.end(), text.begin(),
                       text.end()));  // ASCII: char and id are the same number
  RC_ASSERT(ids[0] == '\n');
}

TEST(GrammarDataImpl, RefusesSettingsOutsideItsDomain) {
  using tests::user_refusal;
  EXPECT_EQ(user_refusal([] { GrammarData(1, 0, 10); }).code, 2);
  EXPECT_EQ(user_refusal([] { GrammarData(1, 1 << 24, 10); }).code, 2);
  EXPECT_EQ(user_refusal([] { GrammarData(1, 8, 0); }).code, 2);
  EXPECT_EQ(user_refusal([] { GrammarData(1, 8, (std::int64_t{1} << 40) + 1); }).code, 2);
  const GrammarData data(3, 8, 10);
  std::vector<std::int32_t> room(9);
  EXPECT_THROW(data.read(10, room), std::out_of_range);
  EXPECT_EQ(data.description(), "the grammar's text, one byte a token, seed 3, 10 samples of 8");
}

}  // namespace
}  // namespace assay::impl::data::grammar_data_test
