// labels: unit property
// Ids of the stated width are never taken for others, ids of another width always are.
#include "spec/data/id_width.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "spec/grammar/demo_grammar.hpp"

namespace assay::spec::data::id_width_test {
namespace {

constexpr std::int64_t enough_tokens = 2048;

std::vector<std::byte> written(const std::vector<std::uint32_t>& ids, std::int64_t width) {
  std::vector<std::byte> bytes;
  for (const std::uint32_t id : ids)
    for (std::int64_t i = 0; i < width; ++i)
      bytes.push_back(i < 4 ? static_cast<std::byte>(id >> (8 * i) & 0xff) : std::byte{0});
  return bytes;
}

/// In pieces that begin anywhere, as those of a long file do.
std::int64_t likely(const std::vector<std::byte>& bytes, std::int64_t width, std::int64_t vocabulary,
                    std::size_t piece = std::size_t{1} << 14, std::size_t first = 0) {
  IdWidth words;
  for (std::size_t at = first; at < bytes.size(); at += piece)
    words.add(at, std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  return words.likely(width, vocabulary);
}

/// Evenly from the vocabulary, or most often the first ones, as words are.
std::vector<std::uint32_t> drawn_ids(std::int64_t vocabulary, std::int64_t tokens, bool evenly,
                                     unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> ids;
  for (std::int64_t i = 0; i < tokens; ++i) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    const double place =
        evenly ? u * static_cast<double>(vocabulary) : std::pow(static_cast<double>(vocabulary), u) - 1;
    ids.push_back(static_cast<std::uint32_t>(std::min(static_cast<double>(vocabulary - 1), place)));
  }
  return ids;
}

RC_GTEST_PROP(IdWidthSpec, IdsOfTheStatedWidthAreNeverTakenForOthers, (unsigned seed, bool evenly)) {
  const std::int64_t width = *rc::gen::element<std::int64_t>(2, 4);
  const int bits = *rc::gen::inRange(1, width == 2 ? 17 : 32);
  const std::int64_t vocabulary = *rc::gen::inRange(std::int64_t{1}, (std::int64_t{1} << bits) + 1);
  const auto bytes =
      written(drawn_ids(vocabulary, *rc::gen::inRange<std::int64_t>(1, 20'000), evenly, seed), width);
  RC_ASSERT(likely(bytes, width, vocabulary, *rc::gen::inRange<std::size_t>(50, 5000)) == width);
}

/// From the file's first byte on or from another, which need not be an id's.
RC_GTEST_PROP(IdWidthSpec, IdsOfAnotherWidthAlwaysAre, (unsigned seed, bool evenly)) {
  const std::int64_t width = *rc::gen::element<std::int64_t>(2, 4, 8);
  const std::int64_t read_as = width == 2 ? 4 : width == 4 ? 2 : *rc::gen::element<std::int64_t>(2, 4);
  const std::int64_t vocabulary =
      *rc::gen::inRange(std::int64_t{32}, width == 2 ? std::int64_t{65537} : largest_vocabulary + 1);
  const std::int64_t tokens = enough_tokens + *rc::gen::inRange<std::int64_t>(0, 5000);
  const auto bytes = written(drawn_ids(vocabulary, tokens, evenly, seed), width);
  const auto first = *rc::gen::inRange<std::size_t>(0, 9);
  RC_ASSERT(likely(bytes, read_as, vocabulary, std::size_t{1} << 14, first) == width);
}

TEST(IdWidthSpec, TextOfBytesHasItsOwnWidthAlone) {
  const std::string text = grammar::demo().window(3, 0, 20'000);
  std::vector<std::uint32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  for (const std::int64_t width : {2, 4, 8})
    for (const std::int64_t read_as : {2, 4}) EXPECT_EQ(likely(written(ids, width), read_as, 256), width);
}

TEST(IdWidthSpec, FewIdsSayNothing) {
  std::vector<std::uint32_t> ids(IdWidth::enough - 1, 40'000);
  for (const std::int64_t read_as : {2, 4})
    for (const std::int64_t width : {2, 4, 8})
      EXPECT_EQ(likely(written(ids, width), read_as, 65536), read_as) << width;
  // Small ids and zeros are what both widths hold.
  EXPECT_EQ(likely(written(std::vector<std::uint32_t>(9999, 15), 4), 2, 65536), 2);
  EXPECT_EQ(likely(written(std::vector<std::uint32_t>(9999, 0), 8), 4, 65536), 4);
}

TEST(IdWidthSpec, AVocabularyOfMillionsHasItsIds) {
  const auto bytes = written(drawn_ids(50'000'000, 9999, true, 1), 4);
  EXPECT_EQ(likely(bytes, 4, 50'000'000), 4);
  EXPECT_EQ(likely(bytes, 4, 128'256), 2) << "they are of no such vocabulary";
}

}  // namespace
}  // namespace assay::spec::data::id_width_test
