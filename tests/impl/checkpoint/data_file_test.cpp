// labels: unit property
// Whether a file of tokens is the one that a run read before: by its size and pieces of it.
#include "impl/checkpoint/data_file.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::checkpoint::data_file_test {
namespace {

std::string bytes(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

/// The file that holds `content`.
DataFile written(const std::string& content, const std::string& name = "tokens") {
  const tests::Scratch scratch;
  scratch.write(name, content);
  return data_file((scratch.path() / name).string());
}

TEST(DataFileImpl, TheSameContentIsTheSameUnderAnotherPath) {
  for (const std::size_t count : {0, 1, 1000, 262'144, 262'145, 1'000'003}) {
    const DataFile here = written(bytes(count)), there = written(bytes(count), "other");
    EXPECT_NE(here.path, there.path);
    EXPECT_EQ(here.bytes, static_cast<std::int64_t>(count));
    EXPECT_TRUE(here.same_content(there)) << count;
    EXPECT_FALSE(here.same_content(written(bytes(count) + "x"))) << count;
  }
}

RC_GTEST_PROP(DataFileImpl, AnyByteOfAFileOfOnePieceCounts, ()) {
  std::string content = bytes(*rc::gen::inRange<std::size_t>(1, 262'145));
  const DataFile before = written(content);
  content[*rc::gen::inRange<std::size_t>(0, content.size())] ^= 1;
  RC_ASSERT(!before.same_content(written(content)));
}

/// A stretch of other tokens that is longer than what lies between two pieces is seen wherever it is.
RC_GTEST_PROP(DataFileImpl, PiecesOfALongFileLieFromItsFirstByteToItsLast, ()) {
  std::string content = bytes(*rc::gen::inRange<std::size_t>(262'145, 2'000'000));
  const DataFile before = written(content);
  const std::size_t stretch = content.size() / 15 + 1,
                    first = *rc::gen::element<std::size_t>(
                        0, content.size() - stretch,
                        *rc::gen::inRange<std::size_t>(0, content.size() - stretch));
  const bool ends = *rc::gen::arbitrary<bool>();  // its first byte or its last alone
  if (ends && (first == 0 || first == content.size() - stretch))
    content[first == 0 ? 0 : content.size() - 1] ^= 1;
  else
    for (std::size_t i = first; i < first + stretch; ++i) content[i] ^= 1;
  RC_ASSERT(!before.same_content(written(content)));
}

TEST(DataFileImpl, AFileThatIsNotThereIsNamed) {
  try {
    data_file("/no/such/tokens");
    FAIL() << "read";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/tokens"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::impl::checkpoint::data_file_test
