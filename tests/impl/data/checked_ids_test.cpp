// labels: unit property fault
#include "impl/data/checked_ids.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>

#include "tests/impl/data/token_bytes.hpp"
#include "tests/impl/data/token_formats.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::data::checked_ids_test {
namespace {

namespace fs = std::filesystem;
using tests::Scratch;
using tests::token_bytes;
using tests::user_refusal;

TokenFile opened(const fs::path& path, std::int64_t vocabulary = 100) {
  return TokenFile(path, TokenType::uint16, vocabulary);
}

TEST(CheckedIdsImpl, PartsCoverEveryTokenOnce) {
  const Scratch scratch;
  // Several pieces of a file, a file of one piece, ids that only one place holds.
  std::vector<std::uint32_t> ids((std::size_t{3} << 22) + 17, 50);
  ids.back() = 99, ids[(std::size_t{1} << 22)] = 3;
  const TokenFile large = opened(scratch.write("a", token_bytes(ids, TokenType::uint16)));
  const TokenFile small = opened(scratch.write("b", token_bytes({7, 8}, TokenType::uint16)));
  for (const std::int64_t parts : {1, 2, 3, 7}) {
    std::vector<IdRange> all(2);
    for (std::int64_t part = 0; part < parts; ++part) {
      std::int64_t last = 0;
      const auto found = scan_ids({&large, &small}, part, parts, [&](std::int64_t done, std::int64_t of) {
        EXPECT_GE(done, last);
        EXPECT_LE(done, of);
        last = done;
      });
      for (std::size_t i = 0; i < 2; ++i) all[i].add(found[i]);
    }
    EXPECT_EQ(all[0].smallest, 3) << parts;
    EXPECT_EQ(all[0].largest, 99) << parts;
    EXPECT_EQ(all[1].smallest, 7) << parts;
    EXPECT_EQ(all[1].largest, 8) << parts;
  }
}

TEST(CheckedIdsImpl, TheFirstIdOutsideTheVocabularyIsNamed) {
  const Scratch scratch;
  const auto path = scratch.write("ids.bin", token_bytes({1, 99, 100, 200}, TokenType::uint16));
  const auto check = [&](std::int64_t vocabulary) {
    return user_refusal([&] {
      const TokenFile file = opened(path, vocabulary);
      require_in_vocabulary(file, scan_ids({&file}, 0, 1)[0]);
    });
  };
  EXPECT_EQ(check(201).code, 0);
  const auto above = check(200), first = check(100);
  EXPECT_EQ(above.code, 65);
  EXPECT_TRUE(above.says("ids.bin\" has id 200 at token 3 (byte offset 6), outside the vocabulary of 200"))
      << above.message;
  EXPECT_TRUE(first.says("has id 100 at token 2")) << first.message;
  const auto negative =
      scratch.write("n.npy", tests::npy("<i4", "(2,)", tests::number(1, 4) + tests::number(0xfffffffe, 4)));
  const TokenFile file(negative, {}, 100);
  EXPECT_TRUE(user_refusal([&] {
                require_in_vocabulary(file, scan_ids({&file}, 0, 1)[0]);
              }).says("id -2 at token 1"));
}

TEST(CheckedIdsImpl, AScanIsRememberedUntilTheFileChanges) {
  const Scratch scratch, cache;
  const ScannedFiles scanned(cache.path() / "deep/er", 0);
  const auto path = scratch.write("a", token_bytes({4, 5, 6, 5}, TokenType::uint16));
  EXPECT_FALSE(scanned.find(opened(path)));
  scanned.keep(opened(path), {4, 6});
  const auto found = scanned.find(opened(path));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->smallest, 4);
  EXPECT_EQ(found->largest, 6);
  fs::rename(path, scratch.path() / "moved");
  EXPECT_TRUE(scanned.find(opened(scratch.path() / "moved"))) << "the path does not count";
  EXPECT_FALSE(scanned.find(TokenFile(scratch.path() / "moved", TokenType::uint32, 9 << 20)));
}

TEST(CheckedIdsImpl, TimeContentAndSizeEachMakeAnotherFile) {
  const Scratch scratch, cache;
  const ScannedFiles scanned(cache.path(), 0);
  const auto path = scratch.write("a", token_bytes({4, 5, 6}, TokenType::uint16));
  const auto time = fs::last_write_time(path);
  scanned.keep(opened(path), {4, 6});
  fs::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_FALSE(scanned.find(opened(path))) << "time";
  scratch.write("a", token_bytes({4, 5, 7}, TokenType::uint16));
  fs::last_write_time(path, time);
  EXPECT_FALSE(scanned.find(opened(path))) << "content";
  scratch.write("a", token_bytes({4, 5, 6, 4}, TokenType::uint16));
  fs::last_write_time(path, time);
  EXPECT_FALSE(scanned.find(opened(path))) << "size";
  scratch.write("a", token_bytes({4, 5, 6}, TokenType::uint16));
  fs::last_write_time(path, time);
  EXPECT_TRUE(scanned.find(opened(path)));
}

TEST(CheckedIdsImpl, ATornOrMissingMemoryIsNone) {
  const Scratch scratch, cache;
  const ScannedFiles scanned(cache.path(), 0);
  const TokenFile file = opened(scratch.write("a", token_bytes({4, 5, 60}, TokenType::uint16)));
  scanned.keep(file, {4, 60});
  ASSERT_TRUE(scanned.find(file));
  const fs::path entry = fs::directory_iterator(cache.path())->path();
  for (std::uintmax_t size = fs::file_size(entry) - 2; size-- > 0;) {
    fs::resize_file(entry, size);
    EXPECT_FALSE(scanned.find(file)) << size;
  }
  const ScannedFiles nowhere("/proc/none", 0), small_left_out(cache.path() / "x");
  nowhere.keep(file, {4, 60});
  EXPECT_FALSE(nowhere.find(file));
  small_left_out.keep(file, {4, 60});
  EXPECT_FALSE(fs::exists(cache.path() / "x"));
}

}  // namespace
}  // namespace assay::impl::data::checked_ids_test
