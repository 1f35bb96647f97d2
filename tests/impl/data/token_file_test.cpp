// labels: unit property fault
#include "impl/data/token_file.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "impl/machine/disk_call.hpp"
#include "tests/impl/data/token_bytes.hpp"
#include "tests/impl/data/token_formats.hpp"
#include "tests/support/scratch.hpp"

namespace {
std::function<void()>& on_read() {
  static std::function<void()> call;
  return call;
}
}  // namespace

// A program's own pread comes before the C library's, for the libraries that it uses as well.
extern "C" ssize_t pread(int descriptor, void* to, size_t count, off_t offset) {
  if (on_read()) on_read()();
  return syscall(SYS_pread64, descriptor, to, count, offset);
}
extern "C" int fstat(int descriptor, struct stat* status) {
  if (on_read()) on_read()();
  return static_cast<int>(syscall(SYS_fstat, descriptor, status));
}

namespace assay::impl::data::token_file_test {
namespace {

using tests::Scratch;
using tests::token_bytes;
using tests::user_refusal;

std::vector<std::int32_t> read(const TokenFile& file, std::int64_t first, std::size_t count) {
  std::vector<std::int32_t> ids(count);
  file.read(first, ids);
  return ids;
}

/// A disk that takes minutes for a read is no rank that hangs.
TEST(TokenFileImpl, EveryReadIsKnownAsAWaitForData) {
  const Scratch scratch;
  const std::vector<std::uint32_t> ids(100'000, 3);
  const TokenFile file(scratch.write("a", token_bytes(ids, TokenType::uint16)), TokenType::uint16, 9);
  int reads = 0, known = 0;
  on_read() = [&] { ++reads, known += outside_under_way() == Outside::data; };
  const std::uint64_t before = DataCall::ended();
  file.verify();
  on_read() = nullptr;
  EXPECT_GT(reads, 1);
  EXPECT_EQ(known, reads);
  EXPECT_EQ(DataCall::ended() - before, static_cast<std::uint64_t>(reads)) << "each is progress";
  EXPECT_EQ(outside_under_way(), Outside::nothing);
}

TEST(TokenFileImpl, DtypeIsStatedByName) {
  EXPECT_EQ(token_type("uint16"), TokenType::uint16);
  EXPECT_EQ(token_type("uint32"), TokenType::uint32);
  for (const char* wrong : {"", "int32", "UINT16", "u16"}) {
    const auto refused = user_refusal([&] { token_type(wrong); });
    EXPECT_EQ(refused.code, 2) << wrong;
    EXPECT_TRUE(refused.says("\"uint16\" or \"uint32\"")) << refused.message;
  }
}

TEST(TokenFileImpl, ReadsBytesAsLittleEndian) {
  const Scratch scratch;
  const auto path = scratch.write("t", std::string("\x01\x00\x02\x01\xff\x00\x00\x00", 8));
  EXPECT_EQ(read(TokenFile(path, TokenType::uint16, 65536), 0, 4),
            (std::vector<std::int32_t>{1, 258, 255, 0}));
  EXPECT_EQ(read(TokenFile(path, TokenType::uint32, std::int64_t{1} << 31), 0, 2),
            (std::vector<std::int32_t>{258 * 65536 + 1, 255}));
}

TEST(TokenFileImpl, ReadsTheFirstAndLastIdOfEachDtype) {
  const Scratch scratch;
  const auto narrow = scratch.write("narrow", token_bytes({0, 65535}, TokenType::uint16));
  EXPECT_EQ(read(TokenFile(narrow, TokenType::uint16, 65536), 0, 2), (std::vector<std::int32_t>{0, 65535}));
  // A vocabulary larger than uint16 can name is no error: the file does not use its upper ids.
  EXPECT_EQ(read(TokenFile(narrow, TokenType::uint16, 128256), 0, 2), (std::vector<std::int32_t>{0, 65535}));
  const auto wide = scratch.write("wide", token_bytes({0, 65535, 65536, 2147483647}, TokenType::uint32));
  EXPECT_EQ(read(TokenFile(wide, TokenType::uint32, std::int64_t{1} << 31), 0, 4),
            (std::vector<std::int32_t>{0, 65535, 65536, 2147483647}));
}

TEST(TokenFileImpl, AnIdOutsideTheVocabularyIsNamedWithFileTokenAndOffset) {
  const Scratch scratch;
  const auto path = scratch.write("ids.bin", token_bytes({7, 49999, 50257, 3}, TokenType::uint16));
  const TokenFile file(path, TokenType::uint16, 50257);
  EXPECT_EQ(read(file, 0, 2), (std::vector<std::int32_t>{7, 49999}));
  for (const auto& refused :
       {user_refusal([&] { read(file, 1, 3); }), user_refusal([&] { file.verify(); })}) {
    EXPECT_EQ(refused.code, 65);
    for (const char* part :
         {"ids.bin\"", "id 50257", "token 2 ", "byte offset 4)", "vocabulary of 50257", "uint16"})
      EXPECT_TRUE(refused.says(part)) << part << " in: " << refused.message;
  }
  // 2^31 and above must not turn negative on the way.
  const auto wide = scratch.write("wide", token_bytes({0x80000000u, 0xffffffffu}, TokenType::uint32));
  const TokenFile large(wide, TokenType::uint32, std::int64_t{1} << 31);
  EXPECT_TRUE(user_refusal([&] { read(large, 0, 1); }).says("id 2147483648 "));
  EXPECT_TRUE(user_refusal([&] { read(large, 1, 1); }).says("id 4294967295 "));
}

TEST(TokenFileImpl, MissingEmptyOddAndOtherFilesSaySo) {
  const Scratch scratch;
  const auto open = [](const std::filesystem::path& path, TokenType type = TokenType::uint32) {
    return user_refusal([&] { TokenFile file(path, type, 256); });
  };
  const auto missing = open(scratch.path() / "absent.bin");
  EXPECT_EQ(missing.code, 74);
  EXPECT_TRUE(missing.says("absent.bin") && missing.says("No such file")) << missing.message;
  const auto empty = open(scratch.write("empty", ""));
  EXPECT_EQ(empty.code, 65);
  EXPECT_TRUE(empty.says("is empty")) << empty.message;
  const auto odd = open(scratch.write("odd", "123456"));
  EXPECT_EQ(odd.code, 65);
  EXPECT_TRUE(odd.says("6 bytes") && odd.says("4 of a uint32")) << odd.message;
  EXPECT_EQ(open(scratch.write("odd", "123456"), TokenType::uint16).code, 0);
  EXPECT_EQ(open(scratch.path()).code, 65);
  ASSERT_EQ(::mkfifo((scratch.path() / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(open(scratch.path() / "pipe").says("not a regular file"));
}

TEST(TokenFileImpl, AVocabularyOutsideItsDomainIsRefused) {
  const Scratch scratch;
  const auto path = scratch.write("t", "1234");
  for (std::int64_t vocabulary : {std::int64_t{0}, std::int64_t{-5}, (std::int64_t{1} << 31) + 1})
    EXPECT_EQ(user_refusal([&] { TokenFile file(path, TokenType::uint16, vocabulary); }).code, 2)
        << vocabulary;
}

TEST(TokenFileImpl, AFileShortenedWhileOpenIsAnErrorAndNoCrash) {
  const Scratch scratch;
  const auto path =
      scratch.write("shrinks", token_bytes(std::vector<std::uint32_t>(5000, 9), TokenType::uint16));
  const TokenFile file(path, TokenType::uint16, 256);
  std::filesystem::resize_file(path, 2001);
  EXPECT_TRUE(user_refusal([&] { read(file, 990, 10); }).says("has 2,001 bytes, not the 10,000 that it had"))
      << "what is left of it, too";
  for (std::int64_t first : {995, 1000, 4000}) {
    const auto refused = user_refusal([&] { read(file, first, 100); });
    EXPECT_EQ(refused.code, 65) << first;
    EXPECT_TRUE(refused.says("had 10000 bytes when it was opened")) << refused.message;
  }
  EXPECT_EQ(user_refusal([&] { file.verify(); }).code, 65);
}

/// Writes `bytes` into a file that is there, from `offset` on.
void overwrite(const std::filesystem::path& path, std::streamoff offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << bytes;
}

/// The time of modification may be set back by a program; that of a change may not.
TEST(TokenFileImpl, TokensThatAreOverwrittenInPlaceAreRefused) {
  const Scratch scratch;
  const std::vector<std::uint32_t> ids(400'000, 7);  // longer than what is sampled
  const std::string bytes = token_bytes(ids, TokenType::uint16);
  for (const bool with_old_time : {false, true}) {
    const auto path = scratch.write("tokens.bin", bytes);
    const TokenFile file(path, TokenType::uint16, 9);
    EXPECT_EQ(read(file, 5, 1), std::vector<std::int32_t>{7});
    const auto time = std::filesystem::last_write_time(path);
    overwrite(path, 0, token_bytes({8}, TokenType::uint16));
    if (with_old_time) std::filesystem::last_write_time(path, time);
    for (const auto& refused :
         {user_refusal([&] { read(file, 300'000, 1); }), user_refusal([&] { file.range(9, 1); })}) {
      EXPECT_EQ(refused.code, 65);
      EXPECT_TRUE(refused.says("tokens.bin\" was overwritten since it was opened")) << refused.message;
    }
    overwrite(path, 0, token_bytes({7}, TokenType::uint16));
    EXPECT_EQ(read(file, 0, 1), std::vector<std::int32_t>{7}) << "it was put back";
  }
}

TEST(TokenFileImpl, AFileThatIsTouchedGoesOnAndOneThatGrowsDoesNot) {
  const Scratch scratch;
  const auto path = scratch.write("tokens.bin", token_bytes({1, 2, 3}, TokenType::uint16));
  const TokenFile file(path, TokenType::uint16, 9);
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(read(file, 0, 3), (std::vector<std::int32_t>{1, 2, 3}));
  int calls = 0;
  on_read() = [&] { ++calls; };
  EXPECT_EQ(read(file, 0, 3), (std::vector<std::int32_t>{1, 2, 3}));
  on_read() = nullptr;
  EXPECT_EQ(calls, 2) << "the tokens, and one look at the times: pieces are not hashed again";
  std::ofstream(path, std::ios::binary | std::ios::app) << token_bytes({4}, TokenType::uint16);
  EXPECT_TRUE(user_refusal([&] { read(file, 0, 1); }).says("has 8 bytes, not the 6 that it had"));
  // Another file of the name is no matter of the one that is open.
  const auto other = scratch.write("other.bin", token_bytes({5, 6}, TokenType::uint16));
  const TokenFile open(other, TokenType::uint16, 9);
  std::filesystem::rename(scratch.write("new.bin", token_bytes({7, 8}, TokenType::uint16)), other);
  EXPECT_EQ(read(open, 0, 2), (std::vector<std::int32_t>{5, 6}));
}

TEST(TokenFileImpl, IdsOfAnotherWidthAreRefusedUnlessTheFileKnowsItsType) {
  const Scratch scratch;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 300; ++i) ids.push_back(20 + i * i % 200);
  const auto open = [&](const std::string& bytes, TokenType stated) {
    return user_refusal(
        [&] { TokenFile(scratch.write("tokens.bin", bytes), stated, 65'536).require_width(65'536); });
  };
  const std::string narrow = token_bytes(ids, TokenType::uint16), wide = token_bytes(ids, TokenType::uint32),
                    longs = [&] {
                      std::string all;
                      for (const std::uint32_t id : ids) all += tests::number(id, 8);
                      return all;
                    }();
  for (const auto& [bytes, stated, said] :
       {std::tuple(wide, TokenType::uint16, "was stated to be uint16 and holds uint32"),
        {narrow, TokenType::uint32, "was stated to be uint32 and holds uint16"},
        {longs, TokenType::uint16, "was stated to be uint16 and holds ids of 8 bytes"},
        {longs, TokenType::uint32, "was stated to be uint32 and holds ids of 8 bytes"}}) {
    const auto refused = open(bytes, stated);
    EXPECT_EQ(refused.code, 65);
    EXPECT_TRUE(refused.says(said)) << refused.message;
  }
  EXPECT_EQ(open(narrow, TokenType::uint16).code, 0);
  EXPECT_EQ(open(wide, TokenType::uint32).code, 0);
  // Pairs of a token and a small label look like uint32, and are not: the file says so, as the error asks.
  scratch.write("tokens.json", R"({"format": "assay-tokens-1", "dtype": "uint16"})");
  EXPECT_TRUE(open(wide, TokenType::uint16).message.empty());
}

TEST(TokenFileImpl, ReadsAtOffsetsBeyondThirtyTwoBits) {
  const Scratch scratch;
  const std::int64_t tokens = (std::int64_t{1} << 31) + 5;  // 8 GiB as uint32, all of it a hole but the end
  const auto path = scratch.write("sparse", "");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(tokens - 2) * 4);
  std::ofstream(path, std::ios::binary | std::ios::app) << token_bytes({41, 42}, TokenType::uint32);
  const TokenFile file(path, TokenType::uint32, 50);
  EXPECT_EQ(file.tokens(), tokens);
  EXPECT_EQ(read(file, tokens - 3, 3), (std::vector<std::int32_t>{0, 41, 42}));
  EXPECT_THROW(read(file, tokens - 2, 3), std::out_of_range);
  const TokenFile strict(path, TokenType::uint32, 42);
  const auto refused = user_refusal([&] { read(strict, tokens - 3, 3); });
  EXPECT_TRUE(refused.says("token 2147483652 (byte offset 8589934608)")) << refused.message;
}

RC_GTEST_PROP(TokenFileImpl, AnyRangeReadsWhatWasWritten, (bool wide)) {
  const auto type = wide ? TokenType::uint32 : TokenType::uint16;
  const auto size = *rc::gen::inRange<std::size_t>(1, 70000);  // several buffers of the reader
  const auto factor = *rc::gen::inRange<std::uint32_t>(1, 60000);
  std::vector<std::uint32_t> ids(size);
  for (std::size_t i = 0; i < size; ++i)
    ids[i] = static_cast<std::uint32_t>(i * factor) % (wide ? 200000 : 65536);
  const Scratch scratch;
  const TokenFile file(scratch.write("t", token_bytes(ids, type)), type, 200000);
  RC_ASSERT(file.tokens() == static_cast<std::int64_t>(size));
  const auto first = *rc::gen::inRange<std::size_t>(0, size);
  const auto count = *rc::gen::inRange<std::size_t>(0, size - first + 1);
  const auto got = read(file, static_cast<std::int64_t>(first), count);
  RC_ASSERT(std::equal(got.begin(), got.end(), ids.begin() + static_cast<std::ptrdiff_t>(first),
                       [](std::int32_t a, std::uint32_t b) { return static_cast<std::uint32_t>(a) == b; }));
  file.verify();
}

RC_GTEST_PROP(TokenFileImpl, VerifyFindsTheFirstWrongIdWhereverItIs, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 40000);
  const auto at = *rc::gen::inRange<std::size_t>(0, size);
  std::vector<std::uint32_t> ids(size, 99);
  for (std::size_t i = at; i < size; i += 7) ids[i] = 100;
  const Scratch scratch;
  const TokenFile file(scratch.write("t", token_bytes(ids, TokenType::uint16)), TokenType::uint16, 100);
  RC_ASSERT(user_refusal([&] { file.verify(); }).says("token " + std::to_string(at) + " ("));
}

}  // namespace
}  // namespace assay::impl::data::token_file_test
