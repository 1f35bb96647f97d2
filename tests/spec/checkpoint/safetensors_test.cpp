// labels: unit fault property fuzz
#include "spec/checkpoint/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::safetensors::safetensors_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string good = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

/// The first bytes of a file whose header is `json`.
std::string framed(const std::string& json) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<char>(json.size() >> 8 * i & 0xff);
  return bytes + json;
}

Header parse_text(const std::string& prefix, std::uint64_t file_size) {
  return parse(std::as_bytes(std::span(prefix)), file_size, "a.safetensors");
}

/// The error text for a header `json` before `data_bytes` of data, "" when it is accepted.
std::string refusal(const std::string& json, std::uint64_t data_bytes) {
  try {
    parse_text(framed(json), 8 + json.size() + data_bytes);
    return "";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
}

/// One tensor "w" with the given fields.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

void expect_refused(int rule, const std::string& json, std::uint64_t data_bytes = 8) {
  EXPECT_THAT(refusal(json, data_bytes),
              StartsWith("a.safetensors: safetensors_c" + std::to_string(rule) + ": "))
      << json;
}

TEST(Safetensors, ReadsAndWritesTheSpecExample) {
  EXPECT_EQ(refusal(good, 8), "");
  const Header header{.tensors = {{"w", "F32", {2}, 0, 8}}, .metadata = {}, .data_offset = 64};
  const std::string bytes = serialize(header);
  EXPECT_EQ(bytes, framed(good + "  "));
  EXPECT_EQ(bytes.size(), 64u);
  EXPECT_EQ(parse_text(bytes, 72), header);
}

TEST(Safetensors, ReadsAFileOfTheReferenceLibrary) {
  const std::string bytes = tests::golden_bytes("formats/safetensors_library.safetensors");
  const Header header = parse_text(bytes, bytes.size());
  EXPECT_EQ(header.at("matrix").shape, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(header.at("matrix").dtype, "F32");
  EXPECT_EQ(header.at("half").dtype, "BF16");
  EXPECT_EQ(header.at("ids").dtype, "I64");
  EXPECT_EQ(header.at("flag").dtype, "BOOL");
  EXPECT_TRUE(header.at("scalar").shape.empty());
  EXPECT_EQ(header.at("empty").begin, header.at("empty").end);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.tensors.size(), 6u);
  // Element (1, 2) of the matrix is 12 in float32, little-endian.
  EXPECT_EQ(bytes.substr(header.data_offset + header.at("matrix").begin + 4 * 7, 4),
            std::string("\0\0\x40\x41", 4));
}

TEST(Safetensors, AtNamesTheTensorThatIsMissing) {
  try {
    parse_text(framed(good), 8 + good.size() + 8).at("v");
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"v\""));
  }
}

TEST(Safetensors, C1RefusesABadLength) {
  const auto refused = [](const std::string& prefix, std::uint64_t file_size) {
    try {
      parse_text(prefix, file_size);
      return std::string();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  const auto c1 = StartsWith("a.safetensors: safetensors_c1: ");
  EXPECT_THAT(refused("", 0), c1);
  EXPECT_THAT(refused("1234567", 7), c1);
  EXPECT_THAT(refused(std::string("\0\0\0\0\0\0\0\0{}", 10), 10), c1);
  EXPECT_THAT(refused(std::string("\1\0\0\0\0\0\0\0{}", 10), 10), c1);
  EXPECT_THAT(refused(std::string(8, '\xff') + "{}", 10), c1);
  EXPECT_THAT(refused(std::string("\1\0\0\1\0\0\0\0{}", 10), std::uint64_t{1} << 40), c1);  // 16 MiB + 1
  EXPECT_THAT(refused(framed(good), 8 + good.size() - 1), c1);                // the file ends within
  EXPECT_THAT(refused(framed(good).substr(0, 20), 8 + good.size() + 8), c1);  // the bytes given do
}

TEST(Safetensors, C2RefusesAnotherFirstByte) {
  expect_refused(2, " " + good);
  expect_refused(2, "[" + good + "]");
  expect_refused(2, "\xef\xbb\xbf" + good);  // byte order mark
}

TEST(Safetensors, C3RefusesWhatIsNotOneJsonObjectInUtf8) {
  expect_refused(3, good.substr(0, good.size() - 1));
  expect_refused(3, good + good);
  expect_refused(3, good + "x");
  expect_refused(3, good + std::string("\0", 1));
  expect_refused(3, std::string("{}\0{\"hidden\":1}", 15), 0);
  expect_refused(3, "{\"\xff\":1}");
  expect_refused(3, "{\"\xc0\xaf\":1}");      // overlong
  expect_refused(3, "{\"\xed\xa0\x80\":1}");  // a surrogate in UTF-8
  expect_refused(3, R"({"\ud800":1})");       // a lone surrogate, escaped
  expect_refused(3, R"({"w":{/*c*/"dtype":"F32"}})");
  EXPECT_EQ(refusal(good + " \n\t\r ", 8), "");
  EXPECT_EQ(refusal("{}", 0), "");
}

TEST(Safetensors, C4RefusesARepeatedKey) {
  expect_refused(
      4,
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})");
  expect_refused(
      4,
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"\u0077":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})");
  expect_refused(4, R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"shape":[2]}})");
  expect_refused(4, R"({"__metadata__":{"a":"1","a":"2"}})", 0);
  expect_refused(4, R"({"__metadata__":{},"__metadata__":{}})", 0);
}

TEST(Safetensors, C5RefusesOtherFieldsAndTypes) {
  expect_refused(5, R"({"w":1})");
  expect_refused(5, R"({"w":[]})");
  expect_refused(5, R"({"w":null})");
  expect_refused(5, R"({"w":{"dtype":"F32","shape":[2]}})");
  expect_refused(5, R"({"w":{"dtype":"F32","data_offsets":[0,8]}})");
  expect_refused(5, R"({"w":{"shape":[2],"data_offsets":[0,8]}})");
  expect_refused(5, R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":"1"}})");
  expect_refused(5, R"({"w":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})");
  expect_refused(5, R"({"w":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})");
  expect_refused(5, R"({"w":{"dtype":{"a":1},"shape":[2],"data_offsets":[0,8]}})");
  for (const char* shape : {"2", "\"2\"", "[-2]", "[2.0]", "[2e0]", "[true]", "[null]", "[[2]]", "[{}]",
                            "[9223372036854775808]", "[18446744073709551616]"})
    expect_refused(5, one("F32", shape, "[0,8]"));
  for (const char* offsets :
       {"8", "[]", "[0]", "[0,8,8]", "[0,8.0]", "[-1,8]", "[\"0\",8]", "[0,[8]]", "[0,18446744073709551616]"})
    expect_refused(5, one("F32", "[2]", offsets));
}

TEST(Safetensors, C5RefusesDeepNestingWithoutUsingTheStack) {
  const std::size_t depth = 4'000'000;
  expect_refused(5, R"({"w":)" + std::string(depth, '[') + std::string(depth, ']') + "}");
  std::string objects = R"({"w":)";
  for (int level = 0; level < 1'000'000; ++level) objects += R"({"shape":)";
  expect_refused(5, objects);
  expect_refused(9, R"({"__metadata__":{"a":)" + std::string(depth, '[') + "}}");
}

TEST(Safetensors, C6RefusesAnUnknownDtype) {
  for (const char* dtype : {"", "f32", "F8_E4M3", "F128", "I4", "FLOAT"})
    expect_refused(6, one(dtype, "[2]", "[0,8]"));
}

TEST(Safetensors, C7RefusesARangeThatIsNotTheSize) {
  expect_refused(7, one("F32", "[3]", "[0,8]"));
  expect_refused(7, one("F64", "[2]", "[0,8]"));
  expect_refused(7, one("F32", "[]", "[0,8]"));
  expect_refused(7, one("F32", "[0]", "[0,8]"));
  expect_refused(7, one("F32", "[2]", "[8,0]"));
  expect_refused(7, one("F32", "[4611686018427387906]", "[0,8]"));      // times 4 is 8 modulo 2^64
  expect_refused(7, one("F32", "[4294967296,4294967296,2]", "[0,8]"));  // 2^65 * 4
  expect_refused(7, one("I8", "[9223372036854775807,3]", "[0,8]"));     // wraps to a positive number
  EXPECT_EQ(refusal(one("F64", "[9223372036854775807,0,9223372036854775807]", "[0,0]"), 0),
            "");  // empty: no overflow
}

TEST(Safetensors, C8RefusesHolesOverlapsAndAnotherFileSize) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(refusal(two("[0,4]", "[4,8]"), 8), "");
  EXPECT_EQ(refusal(two("[4,8]", "[0,4]"), 8), "");
  expect_refused(8, two("[0,4]", "[5,9]"), 9);  // hole
  expect_refused(8, two("[1,5]", "[5,9]"), 9);  // hole at the start
  expect_refused(8, two("[0,4]", "[0,4]"), 8);  // the same bytes twice
  expect_refused(8, two("[0,4]", "[3,7]"), 7);  // overlap
  expect_refused(8, two("[0,4]", "[4,8]"), 7);  // truncated
  expect_refused(8, two("[0,4]", "[4,8]"), 9);  // bytes behind the last tensor
  expect_refused(8, "{}", 1);
  expect_refused(8, one("U8", "[1]", "[18446744073709551614,18446744073709551615]"), 1);
}

TEST(Safetensors, C9RefusesMetadataThatIsNotStrings) {
  for (const char* value : {"1", "null", "true", "[]", "{}", "-1", "0.5"})
    expect_refused(9, R"({"__metadata__":{"a":)" + std::string(value) + "}}", 0);
  expect_refused(9, R"({"__metadata__":"a"})", 0);
  expect_refused(9, R"({"__metadata__":["a"]})", 0);
  EXPECT_EQ(refusal(R"({"__metadata__":{"a":"1"}})", 0), "");
}

TEST(Safetensors, ErrorsQuoteNoControlCharactersAndNoEndlessNames) {
  const std::string text = refusal(R"({"\u001b[31m)" + std::string(100'000, 'n') + R"(":1})", 0);
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_LT(text.size(), 300u);
}

TEST(Safetensors, SerializeRefusesWhatParseWould) {
  const auto refused = [](Header header) {
    try {
      serialize(header);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bug);
      return std::string(error.what());
    }
    return std::string("written");
  };
  EXPECT_THAT(refused({.tensors = {{"w", "F32", {2}, 0, 4}}, .metadata = {}}), HasSubstr("safetensors_c7"));
  EXPECT_THAT(refused({.tensors = {{"w", "F32", {-2}, 0, 8}}, .metadata = {}}), HasSubstr("safetensors_c7"));
  EXPECT_THAT(refused({.tensors = {{"w", "F31", {2}, 0, 8}}, .metadata = {}}), HasSubstr("safetensors_c6"));
  EXPECT_THAT(refused({.tensors = {{"w", "F32", {2}, 8, 16}}, .metadata = {}}), HasSubstr("safetensors_c8"));
  EXPECT_THAT(refused({.tensors = {{"w", "U8", {1}, 0, 1}, {"w", "U8", {1}, 1, 2}}, .metadata = {}}),
              HasSubstr("safetensors_c4"));
  EXPECT_THAT(refused({.tensors = {{"__metadata__", "U8", {1}, 0, 1}}, .metadata = {}}),
              HasSubstr("safetensors_c4"));
  EXPECT_THAT(refused({.tensors = {{"\xff", "U8", {1}, 0, 1}}, .metadata = {}}), HasSubstr("safetensors_c3"));
}

/// A valid header of 0 to 5 tensors with odd names, empty shapes and all dtypes.
Header drawn_header() {
  static const std::vector<std::string> dtypes = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16",
                                                  "I8",  "U64", "U32", "U16",  "U8",  "BOOL"};
  Header header;
  std::uint64_t position = 0;
  for (int i = 0, count = *rc::gen::inRange(0, 6); i < count; ++i) {
    const auto rank = *rc::gen::inRange<std::size_t>(0, 5);
    Tensor tensor{
        .name = std::to_string(i) + *rc::gen::element<std::string>("", "\"", "\\", "\n", "é", "/"),
        .dtype = *rc::gen::elementOf(dtypes),
        .shape = *rc::gen::container<std::vector<std::int64_t>>(rank, rc::gen::inRange<std::int64_t>(0, 6))};
    std::uint64_t bytes = element_bytes(tensor.dtype);
    for (std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
    tensor.begin = position;
    tensor.end = position += bytes;
    header.tensors.push_back(tensor);
  }
  for (int i = 0, count = *rc::gen::inRange(0, 3); i < count; ++i)
    header.metadata[std::to_string(i)] = *rc::gen::element<std::string>("", "v", "\"}", "\t", "ü");
  return header;
}

RC_GTEST_PROP(Safetensors, WhatIsWrittenIsReadBackTheSame, ()) {
  Header header = drawn_header();
  const std::string bytes = serialize(header);
  header.data_offset = bytes.size();
  RC_ASSERT(bytes.size() % data_alignment == 0);
  RC_ASSERT(header_bytes(std::as_bytes(std::span(bytes))) == bytes.size());
  const std::uint64_t data = header.tensors.empty() ? 0 : header.tensors.back().end;
  RC_ASSERT(parse_text(bytes, bytes.size() + data) == header);
}

RC_GTEST_PROP(Safetensors, DamagedHeadersAreRefusedOrStillCoverTheFile, ()) {
  const Header header = drawn_header();
  std::string bytes = serialize(header);
  const std::uint64_t data = header.tensors.empty() ? 0 : header.tensors.back().end;
  const std::uint64_t file_size = bytes.size() + data;
  for (int i = 0, count = *rc::gen::inRange(1, 6); i < count; ++i)
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = static_cast<char>(*rc::gen::inRange(0, 256));
  try {
    const Header found = parse_text(bytes, file_size);
    std::uint64_t covered =
        0;  // damage within a name or a metadata string cannot be seen, damage to the layout must be
    for (const Tensor& tensor : found.tensors) {
      RC_ASSERT(tensor.begin == covered);
      covered = tensor.end;
    }
    RC_ASSERT(found.data_offset + covered == file_size);
  } catch (const UserError& error) {
    RC_ASSERT(error.code() == ExitCode::bad_data);
  }
}

RC_GTEST_PROP(Safetensors, RandomBytesAreRefusedWithoutACrash, ()) {
  // Tokens of the format in random order reach deeper into the reader than bytes do.
  static const std::vector<std::string> tokens = {"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ":",
                                                  ",",
                                                  "\"w\"",
                                                  "\"__metadata__\"",
                                                  "\"dtype\"",
                                                  "\"shape\"",
                                                  "\"data_offsets\"",
                                                  "0",
                                                  "8",
                                                  "-1",
                                                  "1e9",
                                                  "\"F32\"",
                                                  "\"BOOL\"",
                                                  "null",
                                                  "true",
                                                  "\"\\u0000\"",
                                                  "18446744073709551615",
                                                  " "};
  std::string json = "{";
  if (*rc::gen::arbitrary<bool>()) {
    for (const auto& token : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(tokens)))
      json += token;
  } else {
    for (int byte : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 256)))
      json += static_cast<char>(byte);
  }
  try {
    parse_text(framed(json), 8 + json.size() + *rc::gen::inRange<std::uint64_t>(0, 16));
  } catch (const UserError& error) {
    RC_ASSERT(error.code() == ExitCode::bad_data);
  }
}

}  // namespace
}  // namespace assay::spec::safetensors::safetensors_test
