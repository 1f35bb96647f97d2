// labels: unit property fault
#include "impl/data/token_format.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "impl/data/token_data.hpp"
#include "tests/impl/data/token_bytes.hpp"
#include "tests/impl/data/token_formats.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::data::token_format_test {
namespace {

using tests::llm_c;
using tests::megatron_idx;
using tests::npy;
using tests::number;
using tests::Refusal;
using tests::Scratch;
using tests::token_bytes;
using tests::user_refusal;

const std::vector<std::uint32_t> ids = {5, 300, 0, 65535, 7};
const std::vector<std::int32_t> same_ids = {5, 300, 0, 65535, 7};

std::vector<std::int32_t> all_of(const TokenFile& file) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(file.tokens()));
  file.read(0, out);
  return out;
}

TokenFile opened(const std::filesystem::path& path, std::optional<TokenType> stated = {}) {
  return TokenFile(path, stated, 70000);
}
Refusal refused(const std::filesystem::path& path, std::optional<TokenType> stated = {}) {
  return user_refusal([&] { opened(path, stated); });
}
void expect_refused(const Refusal& refusal, int code, const std::string& says) {
  EXPECT_EQ(refusal.code, code) << refusal.message;
  EXPECT_TRUE(refusal.says(says)) << refusal.message << "\nlacks: " << says;
}

TEST(TokenFormatImpl, LlmCFilesAreKnownByTheirHeader) {
  const Scratch scratch;
  const TokenFile narrow = opened(scratch.write("a.bin", llm_c(ids, 20240520, 1, TokenType::uint16)));
  EXPECT_EQ(narrow.format().description(), "llm.c uint16");
  EXPECT_EQ(all_of(narrow), same_ids);
  const TokenFile wide = opened(scratch.write("b.bin", llm_c({69999, 1}, 20240801, 7, TokenType::uint32)));
  EXPECT_EQ(wide.format().description(), "llm.c uint32");
  EXPECT_EQ(all_of(wide), (std::vector<std::int32_t>{69999, 1}));
  // A place in the file counts from its first byte, a token from the first token.
  const auto path = scratch.write("c.bin", llm_c({1, 2, 65535}, 20240520, 1, TokenType::uint16));
  const TokenFile strict(path, {}, 100);
  EXPECT_TRUE(user_refusal([&] { strict.verify(); }).says("id 65535 at token 2 (byte offset 1028)"));
}

TEST(TokenFormatImpl, TornAndUnknownLlmCFilesAreRefused) {
  const Scratch scratch;
  const std::string whole = llm_c(ids, 20240520, 1, TokenType::uint16);
  expect_refused(refused(scratch.write("short", whole.substr(0, whole.size() - 2))), 65,
                 "counts 5 tokens in llm.c's header, 1034 bytes with it, and has 1032");
  expect_refused(refused(scratch.write("long", whole + "ab")), 65, "and has 1036");
  expect_refused(refused(scratch.write("head", whole.substr(0, 100))), 65, "and has 100");
  expect_refused(refused(scratch.write("v3", llm_c(ids, 20240520, 3, TokenType::uint16))), 65,
                 "version 3; version 1 is read");
  expect_refused(refused(scratch.write("eval", llm_c(ids, 20240522, 1, TokenType::uint16))), 65,
                 "questions of llm.c's evaluations");
}

TEST(TokenFormatImpl, NpyFilesOfEveryIntegerAreRead) {
  const Scratch scratch;
  const std::pair<const char*, std::int64_t> types[] = {
      {"<u2", 2}, {"<u4", 4}, {"<i4", 4}, {"<u8", 8}, {"<i8", 8}};
  for (const auto& [descr, size] : types)
    for (const int version : {1, 2}) {
      std::string bytes;
      for (const std::uint32_t id : ids) bytes += number(id, size);
      const TokenFile file = opened(scratch.write("a.npy", npy(descr, "(5,)", bytes, version)));
      EXPECT_EQ(all_of(file), same_ids) << descr;
      EXPECT_EQ(file.format().container, "npy");
    }
  const TokenFile small = opened(scratch.write("a.npy", npy("|u1", "(3,)", "\x01\x02\xff")));
  EXPECT_EQ(all_of(small), (std::vector<std::int32_t>{1, 2, 255}));
}

TEST(TokenFormatImpl, NegativeAndHugeIdsAreOutsideEveryVocabulary) {
  const Scratch scratch;
  const auto first = [&](const char* descr, std::uint64_t id, std::int64_t size) {
    const auto path = scratch.write("a.npy", npy(descr, "(1,)", number(id, size)));
    return user_refusal([&] { TokenFile(path, {}, std::int64_t{1} << 31).verify(); });
  };
  expect_refused(first("<i4", 0xffffffff, 4), 65, "id -1 at token 0");
  expect_refused(first("<i8", ~std::uint64_t{1}, 8), 65, "id -2 at token 0");
  expect_refused(first("<u8", ~std::uint64_t{0}, 8), 65, "id 18446744073709551615 at token 0");
  expect_refused(first("<i8", std::uint64_t{1} << 32, 8), 65, "id 4294967296 at token 0");
}

TEST(TokenFormatImpl, NpyFilesOfOtherThingsAreRefused) {
  const Scratch scratch;
  const auto one = [&](const std::string& bytes) { return refused(scratch.write("a.npy", bytes)); };
  expect_refused(one(npy("<f4", "(1,)", "1234")), 65, "of type '<f4'");
  expect_refused(one(npy(">u2", "(2,)", "1234")), 65, "of type '>u2'");
  expect_refused(one(npy("|O", "(1,)", "1234")), 65, "of type '|O'");
  expect_refused(one(npy("<u2", "(2, 1)", "1234")), 65, "shape (2, 1); token ids stand in one row");
  expect_refused(one(npy("<u2", "()", "12")), 65, "of shape ()");
  expect_refused(one(npy("<u2", "(3,)", "1234")), 65, "counts 3 ids of 2 bytes, and 4 bytes follow");
  expect_refused(one(npy("<u2", "(2,)", "1234").substr(0, 40)), 65, "ends within its header");
}

TEST(TokenFormatImpl, MegatronFilesBringTypeAndDocuments) {
  const Scratch scratch;
  const auto path = scratch.write("a.bin", token_bytes(ids, TokenType::uint16));
  // Three sequences; the first two are one document, then one without a token, then the third.
  scratch.write("a.idx", megatron_idx(8, 2, {1, 3, 1}, {0, 2, 2, 3}));
  const TokenFile file = opened(path);
  EXPECT_EQ(file.format().description(), "Megatron uint16");
  EXPECT_EQ(file.format().documents, 3);
  EXPECT_EQ(all_of(file), same_ids);
  EXPECT_EQ(document_ends(file.file(), file.format()), (std::vector<std::int64_t>{4, 4, 5}));
  // A mode behind each sequence, as multimodal data has.
  scratch.write("a.idx", megatron_idx(8, 2, {1, 3, 1}, {0, 2, 2, 3}) + std::string(3, '\0'));
  EXPECT_EQ(opened(path).tokens(), 5);
  const auto wide = scratch.write("b.bin", token_bytes(ids, TokenType::uint32));
  scratch.write("b.idx", megatron_idx(4, 4, {5}, {0, 1}));
  EXPECT_EQ(opened(wide).format().description(), "Megatron int32");
  EXPECT_EQ(all_of(opened(wide)), same_ids);
}

TEST(TokenFormatImpl, AnIndexThatDoesNotFitItsFileIsRefused) {
  const Scratch scratch;
  const auto path = scratch.write("a.bin", token_bytes(ids, TokenType::uint16));
  const auto with = [&](const std::string& index) {
    scratch.write("a.idx", index);
    return refused(path);
  };
  const std::string whole = megatron_idx(8, 2, {1, 3, 1}, {0, 2, 3});
  expect_refused(with(megatron_idx(8, 2, {1, 3}, {0, 2})), 65, "counts 4 tokens of uint16, 8 bytes");
  expect_refused(with(megatron_idx(4, 4, {1, 3, 1}, {0, 2, 3})), 65, "counts 5 tokens of int32, 20 bytes");
  expect_refused(with(megatron_idx(7, 4, {1, 3, 1}, {0, 2, 3})), 65, "dtype code 7, floating-point");
  expect_refused(with(megatron_idx(8, 2, {1, 3, 1}, {0, 2, 2})), 65, "do not cover its 3 sequences");
  expect_refused(with(megatron_idx(8, 2, {1, 3, 1}, {0, 3, 2, 3})), 65, "do not cover its 3 sequences");
  std::string moved = whole;
  moved[34 + 12 + 8] = 4;  // the second sequence
  expect_refused(with(moved), 65, "has sequence 1 at byte 4, where the ones before it end at 2");
  expect_refused(with("TNTIDX" + std::string(2, '\0') + whole), 65, "older kind");
  expect_refused(with("something else"), 65, "is no index of Megatron's");
  for (std::size_t kept = 1; kept < whole.size(); ++kept)
    EXPECT_EQ(with(whole.substr(0, kept)).code, 65) << kept;
  EXPECT_EQ(with(whole).code, 0);
  expect_refused(refused(scratch.path() / "a.idx"), 65, "name the .bin beside it");
}

TEST(TokenFormatImpl, RawIdsNeedAType) {
  const Scratch scratch;
  const auto narrow = scratch.write("a.bin", token_bytes(ids, TokenType::uint16));
  expect_refused(refused(narrow), 2, "its beginning looks like uint16");
  const auto wide = scratch.write("b.bin", token_bytes({5, 300, 65535}, TokenType::uint32));
  expect_refused(refused(wide), 2, "its beginning looks like uint32");
  EXPECT_EQ(opened(narrow, TokenType::uint16).format().description(), "uint16");
}

TEST(TokenFormatImpl, RawIdsOfOursSayTheirType) {
  const Scratch scratch;
  const std::string facts = "{\"format\": \"assay-tokens-1\", \"dtype\": \"uint32\"}";
  const auto path = scratch.write("a.bin", token_bytes({5, 69999}, TokenType::uint32));
  scratch.write("a.json", facts);
  scratch.write("a.ends", number(1, 8) + number(2, 8));
  EXPECT_EQ(all_of(opened(path)), (std::vector<std::int32_t>{5, 69999}));
  EXPECT_EQ(document_ends(opened(path).file(), opened(path).format()), (std::vector<std::int64_t>{1, 2}));
  const auto shard = scratch.write("a-00002.bin", token_bytes({3}, TokenType::uint32));
  EXPECT_EQ(all_of(opened(shard)), (std::vector<std::int32_t>{3}));
  expect_refused(refused(path, TokenType::uint16), 2, "holds uint32 by the .json beside it");
  scratch.write("a.ends", number(2, 8) + number(1, 8));
  EXPECT_EQ(user_refusal([&] { document_ends(opened(path).file(), opened(path).format()); }).code, 65);
  scratch.write("a.json", "{\"format\": \"another\", \"dtype\": \"uint16\"}");
  EXPECT_EQ(refused(path).code, 2) << "another program's";
}

TEST(TokenFormatImpl, EndsThatWereCutOffAreRefused) {
  const Scratch scratch;
  const std::string three = number(2, 8) + number(3, 8) + number(5, 8);
  const auto with = [&](const std::filesystem::path& path, const std::string& ends) {
    std::filesystem::path beside = path;
    scratch.write(beside.replace_extension(".ends").filename().string(), ends);
    const TokenFile file = opened(path, TokenType::uint32);
    return user_refusal([&] { document_ends(file.file(), file.format()); });
  };
  const auto path = scratch.write("a.bin", token_bytes(ids, TokenType::uint32));
  EXPECT_EQ(with(path, three).code, 0);
  expect_refused(with(path, three.substr(0, 20)), 65, "a.ends\" has 20 bytes, no multiple of the 8");
  expect_refused(with(path, three.substr(0, 16)), 65, "names 3 as its last end of a document");
  expect_refused(with(path, ""), 65, "");
  // A document may go on in the next shard. What was written with a shard says how many ends it has.
  const auto shard = scratch.write("b-00001.bin", token_bytes(ids, TokenType::uint32));
  EXPECT_EQ(with(shard, three.substr(0, 16)).code, 0);
  scratch.write("b.json",
                "{\"format\": \"assay-tokens-1\", \"dtype\": \"uint32\", \"files\": "
                "[{\"name\": \"b-00001.bin\", \"documents\": 2}]}");
  EXPECT_EQ(with(shard, three.substr(0, 16)).code, 0);
  expect_refused(with(shard, three.substr(0, 8)), 65, "names 1 ends of documents, and 2 were written with");
  // One in which no document ends; the .json is read again, since it has changed.
  scratch.write("b.json",
                "{\"format\": \"assay-tokens-1\", \"dtype\": \"uint32\", \"files\": "
                "[{\"name\": \"b-00001.bin\", \"documents\": 0}]}");
  EXPECT_EQ(with(shard, "").code, 0);
  expect_refused(with(shard, number(2, 8)), 65, "names 1 ends of documents, and 0 were written with");
  // As `assay data convert` makes it of such a shard, and as it stands under another name.
  const auto converted = scratch.write("c.bin", token_bytes(ids, TokenType::uint32));
  scratch.write("c.json",
                "{\"format\": \"assay-tokens-1\", \"dtype\": \"uint32\", \"documents\": 2, \"tokens\": 5}");
  EXPECT_EQ(with(converted, three.substr(0, 16)).code, 0);
  expect_refused(with(converted, three.substr(0, 8)), 65,
                 "names 1 ends of documents, and 2 were written with");
  scratch.write("c.json",
                "{\"format\": \"assay-tokens-1\", \"dtype\": \"uint32\", \"files\": "
                "[{\"name\": \"b-00001.bin\", \"documents\": 2}]}");
  EXPECT_EQ(with(converted, three.substr(0, 16)).code, 0);
}

TEST(TokenFormatImpl, ADtypeThatContradictsTheFileIsRefused) {
  const Scratch scratch;
  const auto llm = scratch.write("a.bin", llm_c(ids, 20240520, 1, TokenType::uint16));
  expect_refused(refused(llm, TokenType::uint32), 2,
                 "holds uint16 by its header, and data.dtype = \"uint32\" is stated; leave data.dtype out");
  EXPECT_EQ(refused(llm, TokenType::uint16).code, 0);
  expect_refused(refused(scratch.write("b.npy", npy("<u4", "(1,)", number(1, 4))), TokenType::uint16), 2,
                 "holds uint32 by its header");
  const auto bin = scratch.write("m.bin", token_bytes(ids, TokenType::uint16));
  scratch.write("m.idx", megatron_idx(8, 2, {5}, {0, 1}));
  expect_refused(refused(bin, TokenType::uint32), 2, "holds uint16 by the .idx beside it");
}

TEST(TokenFormatImpl, WhatHoldsNoIdsIsNamedWithTheNextStep) {
  const Scratch scratch;
  const auto expect = [&](const std::string& bytes, const std::string& what, const std::string& next) {
    const auto path = scratch.write("file", bytes);
    for (const auto stated : {std::optional<TokenType>(), std::optional(TokenType::uint16)}) {
      const Refusal refusal = refused(path, stated);
      expect_refused(refusal, 65, "is " + what + " and holds no token ids; ");
      EXPECT_TRUE(refusal.says(next)) << refusal.message;
    }
  };
  const std::string more(60, '\0'),
      script = "recipes/own-text/tokenise.py " + (scratch.path() / "file").string();
  std::string story;
  for (int i = 0; i < 300; ++i) story += "Once upon a time, in Zürich – \t and so on.\r\n";
  expect(story, "text", script);
  expect(story.substr(0, 48), "text", script);
  for (std::size_t cut = 4080; cut < 4110; ++cut)
    expect(std::string(cut, 'x') + "ü–" + story, "text", script);
  std::string latin, wide = "\xff\xfe";
  for (int i = 0; i < 60; ++i) latin += "Z\xfcrich ist sch\xf6n. ";
  for (const char letter : story.substr(0, 40)) wide += {letter, '\0'};
  expect(latin, "text", script);
  expect(wide, "text in UTF-16", "iconv");
  expect("\n  {\"text\": \"One two three four five six seven eight.\"}\n", "JSON", script);
  expect("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]", "JSON", script);
  expect("PAR1" + more, "a Parquet file", script);
  expect(std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + more, "compressed by gzip", "gunzip");
  expect("\x28\xb5\x2f\xfd" + more, "compressed by zstd", "unzstd");
  expect("PK\x03\x04" + more, "a zip archive (.zip, .npz, .pt)", "numpy.save");
  expect(std::string("\x80\x04\x95\x20\0\0\0\0\0\0\0", 11) + more + ".", "a Python pickle", "numpy.save");
  expect(std::string("\x80\x02]q\0", 5) + more + ".", "a Python pickle", "numpy.save");
  expect(std::string("]q\0(K\1", 6) + more + ".", "a Python pickle", "numpy.save");
  expect(std::string("}q\0X\3\0\0\0ids", 11) + more + ".", "a Python pickle", "numpy.save");
}

/// Ids whose first ones begin like a compressed file or a pickle, and go on as ids do.
TEST(TokenFormatImpl, IdsThatBeginLikeAnotherFileAreRead) {
  const Scratch scratch;
  for (const std::uint32_t first : {0x8b1fu, 0x0480u, 0x0280u, 0x4b50u, 0x4150u, 0x5a42u, 0x757bu, 0xfeffu}) {
    std::vector<std::uint32_t> many(500);
    std::iota(many.begin(), many.end(), 40u);
    many[0] = first;
    EXPECT_EQ(refused(scratch.write("a", token_bytes(many, TokenType::uint16)), TokenType::uint16).code, 0)
        << std::hex << first;
  }
}

RC_GTEST_PROP(TokenFormatImpl, TheSameIdsAreReadFromEveryFormat, ()) {
  const auto many =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 65536));
  RC_PRE(!many.empty());
  const Scratch scratch;
  const std::string raw = token_bytes(many, TokenType::uint16);
  const auto count = static_cast<std::int64_t>(many.size());
  const auto plain = scratch.write("raw", raw), with_index = scratch.write("m.bin", raw);
  scratch.write("m.idx", megatron_idx(8, 2, {count}, {0, 1}));
  const auto expected = all_of(TokenFile(plain, TokenType::uint16, 65536));
  for (const auto& path : {with_index, scratch.write("a.bin", llm_c(many, 20240520, 1, TokenType::uint16)),
                           scratch.write("b.bin", llm_c(many, 20240801, 7, TokenType::uint32)),
                           scratch.write("c.npy", npy("<u2", "(" + std::to_string(count) + ",)", raw))}) {
    const TokenFile file = opened(path);
    RC_ASSERT(all_of(file) == expected);
    const IdRange range = file.range(0, count);
    RC_ASSERT(range.smallest == *std::min_element(expected.begin(), expected.end()));
    RC_ASSERT(range.largest == *std::max_element(expected.begin(), expected.end()));
  }
}

TEST(TokenFormatImpl, FilesOfSeveralFormatsAreOneDataSet) {
  const Scratch scratch;
  const auto llm = scratch.write("a.bin", llm_c({1, 2, 3, 4}, 20240520, 1, TokenType::uint16));
  const auto array = scratch.write("b.npy", npy("<i4", "(3,)", number(7, 4) + number(8, 4) + number(9, 4)));
  const TokenData data({llm, array}, {}, 100, 2);
  EXPECT_EQ(data.description(),
            "2 token files, llm.c uint16 and npy int32, 7 tokens, 2 samples of 2, 1 tokens unused");
  std::vector<std::int32_t> sample(3);
  data.read(1, sample);
  EXPECT_EQ(sample, (std::vector<std::int32_t>{7, 8, 9}));
}

}  // namespace
}  // namespace assay::impl::data::token_format_test
