// labels: unit property
#include "spec/checkpoint/content_hash.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace assay::spec::content_hash_test {
namespace {

std::string sample_of(const std::string& content) {
  return sample_hash(content.size(), [&](std::uint64_t position, std::span<std::byte> into) {
    std::ranges::copy(std::as_bytes(std::span(content)).subspan(position, into.size()), into.begin());
  });
}

std::string bytes(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST(SampleHashSpec, OfAShortFileIsThatOfAllOfIt) {
  for (const std::size_t count : {0, 1, 1000, 262'144}) {
    const std::string content = bytes(count);
    EXPECT_EQ(sample_of(content), content_hash(std::as_bytes(std::span(content)))) << count;
  }
}

/// A stretch that is longer than what lies between two pieces is seen wherever it is, and so are both ends.
RC_GTEST_PROP(SampleHashSpec, PiecesOfALongFileLieFromItsFirstByteToItsLast, ()) {
  std::string content = bytes(*rc::gen::inRange<std::size_t>(262'145, 2'000'000));
  const std::string before = sample_of(content);
  const std::size_t stretch = content.size() / 15 + 1,
                    first = *rc::gen::inRange<std::size_t>(0, content.size() - stretch + 1);
  std::string changed = content;
  for (std::size_t i = first; i < first + stretch; ++i) changed[i] ^= 1;
  RC_ASSERT(sample_of(changed) != before);
  content[*rc::gen::element<std::size_t>(0, content.size() - 1)] ^= 1;
  RC_ASSERT(sample_of(content) != before);
}

}  // namespace
}  // namespace assay::spec::content_hash_test
