// labels: unit property fault
#include "impl/data/token_data.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "tests/impl/data/token_bytes.hpp"
#include "tests/impl/data/token_formats.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::data::token_data_test {
namespace {

using tests::Scratch;
using tests::token_bytes;
using tests::user_refusal;

std::vector<std::int32_t> read(const TokenData& data, std::int64_t sample) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(data.sequence_length() + 1));
  data.read(sample, ids);
  return ids;
}

std::vector<std::uint32_t> counting(std::uint32_t first, std::size_t size) {
  std::vector<std::uint32_t> ids(size);
  for (std::size_t i = 0; i < size; ++i) ids[i] = first + static_cast<std::uint32_t>(i);
  return ids;
}

TEST(TokenDataImpl, NeighbouringSamplesShareOneToken) {
  const Scratch scratch;
  const TokenData data({scratch.write("t", token_bytes(counting(10, 8), TokenType::uint16))},
                       TokenType::uint16, 100, 3);
  EXPECT_EQ(data.samples(), 2);
  EXPECT_EQ(read(data, 0), (std::vector<std::int32_t>{10, 11, 12, 13}));
  EXPECT_EQ(read(data, 1), (std::vector<std::int32_t>{13, 14, 15, 16}));
  EXPECT_EQ(data.unused_tokens(), 1);
  EXPECT_EQ(data.description(), "1 token file, uint16, 8 tokens, 2 samples of 3, 1 tokens unused");
}

TEST(TokenDataImpl, IdsOfAnotherWidthAreRefused) {
  const Scratch scratch;
  const auto ids = counting(1, 200);
  const auto refused = [&](TokenType written, TokenType stated) {
    return user_refusal(
        [&] { TokenData({scratch.write("t", token_bytes(ids, written))}, stated, 1 << 20, 3); });
  };
  EXPECT_EQ(refused(TokenType::uint32, TokenType::uint16).code, 65);
  EXPECT_EQ(refused(TokenType::uint16, TokenType::uint32).code, 65);
  EXPECT_EQ(refused(TokenType::uint16, TokenType::uint16).code, 0);
  EXPECT_EQ(refused(TokenType::uint32, TokenType::uint32).code, 0);
  EXPECT_NO_THROW(TokenData({scratch.write("z", std::string(400, '\0'))}, TokenType::uint16, 256, 3))
      << "a file of one id";
}

TEST(TokenDataImpl, SaysWhatItsFilesHold) {
  const Scratch scratch;
  const auto a = scratch.write("a", token_bytes({1, 2, 3}, TokenType::uint16)),
             b = scratch.write("b", token_bytes({1, 2, 4}, TokenType::uint16));
  const auto files = TokenData({a, b, a}, TokenType::uint16, 9, 2).files();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[1].path, b.string());
  EXPECT_EQ(files[1].bytes, 6);
  EXPECT_EQ(files[1].format, "uint16");
  EXPECT_TRUE(files[0].same_content(files[2]));
  EXPECT_FALSE(files[0].same_content(files[1]));
  auto wide = files[0];
  wide.format = "uint32";
  EXPECT_FALSE(wide.same_content(files[0])) << "the same bytes are other ids";
}

/// The document ends of T + 1 or fewer tokens each, laid out over samples of T, against a walk over tokens.
RC_GTEST_PROP(TokenDataImpl, SamplesKnowTheDocumentEndsOfTheirFiles, (unsigned seed)) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  const std::int64_t T = 1 + below(8);
  const Scratch scratch;
  std::vector<std::filesystem::path> paths;
  std::vector<std::vector<bool>> begins;  // of each file and token: whether a document begins there
  for (const char* name : {"a", "b"}) {
    std::string ends;
    std::int64_t tokens = 0;
    begins.emplace_back();
    while (tokens <= T || below(6) != 0) {
      const std::int64_t document = below(2 * T);  // also of no tokens
      if (document > 0) begins.back().push_back(true);
      for (std::int64_t t = 1; t < document; ++t) begins.back().push_back(false);
      ends += tests::number(static_cast<std::uint64_t>(tokens += document), 8);
    }
    paths.push_back(scratch.write(std::string(name) + ".bin",
                                  token_bytes(counting(0, begins.back().size()), TokenType::uint16)));
    scratch.write(std::string(name) + ".ends", ends);
  }
  const TokenData data(paths, TokenType::uint16, 65536, T, {}, true);
  std::int64_t sample = 0;
  for (const std::vector<bool>& file : begins)
    for (std::int64_t first = 0; first + T < std::ssize(file); first += T, ++sample) {
      std::vector<std::int64_t> expected;
      for (std::int64_t t = 1; t < T; ++t)
        if (file[static_cast<std::size_t>(first + t)]) expected.push_back(t);
      RC_ASSERT(data.document_ends(sample) == expected);
    }
  RC_ASSERT(sample == data.samples());
  RC_ASSERT(!TokenData(paths, TokenType::uint16, 65536, T).document_ends(0));
}

TEST(TokenDataImpl, AFileThatKnowsNoDocumentEndsIsRefusedWhereTheyAreAskedFor) {
  const Scratch scratch;
  const auto path = scratch.write("a.bin", token_bytes(counting(0, 9), TokenType::uint16));
  const auto open = [&] { TokenData({path}, TokenType::uint16, 100, 3, {}, true); };
  const auto refused = user_refusal(open);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.says("a.bin") && refused.says("does not say where its documents end"))
      << refused.message;
  scratch.write("a.ends", "");
  EXPECT_EQ(user_refusal(open).code, 65) << "an empty list of ends";
  scratch.write("a.ends", tests::number(10, 8));
  EXPECT_EQ(user_refusal(open).code, 65) << "an end beyond the tokens";
}

// T = 4, micro-batches of 2: every size from none to three batches, byte by byte.
TEST(TokenDataImpl, EveryFileSizeUpToThreeBatchesIsReadOrRefused) {
  constexpr std::int64_t T = 4, largest = 3 * 2 * T + 2;
  const std::string all = token_bytes(counting(1, largest), TokenType::uint16);
  const Scratch scratch;
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const auto path = scratch.write("t", all.substr(0, size));
    const auto tokens = static_cast<std::int64_t>(size / 2);
    const auto refused = user_refusal([&] {
      const TokenData data({path}, TokenType::uint16, 1000, T);
      EXPECT_EQ(data.samples(), (tokens - 1) / T) << size;
      EXPECT_LT(data.unused_tokens(), T) << size;
      for (std::int64_t sample = 0; sample < data.samples(); ++sample)
        for (std::int64_t t = 0; t <= T; ++t)
          EXPECT_EQ(read(data, sample)[static_cast<std::size_t>(t)], sample * T + t + 1) << size;
    });
    EXPECT_EQ(refused.code, size % 2 == 1 || tokens < T + 1 ? 65 : 0) << size << " " << refused.message;
    if (size % 2 == 0 && size > 0 && tokens < T + 1) {
      EXPECT_TRUE(refused.says("has " + std::to_string(tokens) + " tokens") && refused.says("needs 5"));
    }
  }
}

// Over all files: the targets of samples in order are the tokens of each file after its first, none left out
// or twice.
RC_GTEST_PROP(TokenDataImpl, EveryTargetIsPredictedOnce, (bool wide)) {
  const auto type = wide ? TokenType::uint32 : TokenType::uint16;
  const auto T = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto files = *rc::gen::inRange<std::size_t>(1, 5);
  const Scratch scratch;
  std::vector<std::filesystem::path> paths;
  std::vector<std::int32_t> expected;
  std::int64_t tokens = 0;
  for (std::size_t f = 0; f < files; ++f) {
    const auto size = static_cast<std::size_t>(T) + *rc::gen::inRange<std::size_t>(1, 40);
    const auto ids = counting(static_cast<std::uint32_t>(1000 * f), size);
    paths.push_back(scratch.write(std::to_string(f), token_bytes(ids, type)));
    const auto used = (size - 1) / static_cast<std::size_t>(T) * static_cast<std::size_t>(T);
    for (std::size_t i = 1; i <= used; ++i) expected.push_back(static_cast<std::int32_t>(ids[i]));
    tokens += static_cast<std::int64_t>(size);
  }
  const TokenData data(paths, type, 10000, T);
  std::vector<std::int32_t> targets;
  for (std::int64_t sample = 0; sample < data.samples(); ++sample) {
    const auto ids = read(data, sample);
    if (ids[0] % 1000 != 0) RC_ASSERT(ids[0] == targets.back());  // not the first of a file: shares one token
    targets.insert(targets.end(), ids.begin() + 1, ids.end());
  }
  RC_ASSERT(targets == expected);
  RC_ASSERT(data.tokens() == tokens);
  RC_ASSERT(data.unused_tokens() ==
            tokens - static_cast<std::int64_t>(files) - static_cast<std::int64_t>(expected.size()));
  data.verify();
}

TEST(TokenDataImpl, RefusesNoFilesNoTokensAndOneBadFileAmongMany) {
  const Scratch scratch;
  const auto good = scratch.write("good", token_bytes(counting(0, 20), TokenType::uint16));
  const auto brief = scratch.write("brief", token_bytes(counting(0, 4), TokenType::uint16));
  EXPECT_EQ(user_refusal([&] { TokenData({}, TokenType::uint16, 100, 4); }).code, 2);
  EXPECT_EQ(user_refusal([&] { TokenData({good}, TokenType::uint16, 100, 0); }).code, 2);
  const auto refused = user_refusal([&] { TokenData({good, brief, good}, TokenType::uint16, 100, 4); });
  EXPECT_EQ(refused.code, 65);
  EXPECT_TRUE(refused.says("brief\"")) << refused.message;
  EXPECT_EQ(user_refusal([&] {
              TokenData({good, scratch.path() / "absent"}, TokenType::uint16, 100, 4);
            }).code,
            74);
  EXPECT_EQ(user_refusal([&] { TokenData({good, good}, TokenType::uint16, 19, 4).verify(); }).code, 65);
}

TEST(TokenDataImpl, ASampleOrSpanThatDoesNotFitIsABug) {
  const Scratch scratch;
  const TokenData data({scratch.write("t", token_bytes(counting(0, 9), TokenType::uint16))},
                       TokenType::uint16, 100, 4);
  std::vector<std::int32_t> room(5), small(4);
  EXPECT_THROW(data.read(2, room), std::out_of_range);
  EXPECT_THROW(data.read(-1, room), std::out_of_range);
  EXPECT_THROW(data.read(0, small), std::out_of_range);
}

TEST(TokenDataImpl, NumbersSamplesBeyondTwoToTheThirtyOneTokens) {
  const Scratch scratch;
  const std::int64_t tokens = (std::int64_t{1} << 31) + 2;
  const auto path = scratch.write("sparse", "");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(tokens - 1) * 2);
  std::ofstream(path, std::ios::binary | std::ios::app) << token_bytes({7}, TokenType::uint16);
  const TokenData data({path, path}, TokenType::uint16, 8, 1);
  EXPECT_EQ(data.samples(), 2 * (tokens - 1));
  EXPECT_EQ(read(data, tokens - 2), (std::vector<std::int32_t>{0, 7}));
  EXPECT_EQ(read(data, tokens - 1), (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(read(data, 2 * tokens - 3), (std::vector<std::int32_t>{0, 7}));
}

}  // namespace
}  // namespace assay::impl::data::token_data_test
