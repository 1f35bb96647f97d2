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
  EXPECT_EQ(read(file, 990, 10), std::vector<std::int32_t>(10, 9));
  for (std::int64_t first : {995, 1000, 4000}) {
    const auto refused = user_refusal([&] { read(file, first, 100); });
    EXPECT_EQ(refused.code, 65) << first;
    EXPECT_TRUE(refused.says("had 10000 bytes when it was opened")) << refused.message;
  }
  EXPECT_EQ(user_refusal([&] { file.verify(); }).code, 65);
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
