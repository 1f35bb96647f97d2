// labels: unit fault
#include "tests/support/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "spec/checkpoint/safetensors.hpp"
#include "spec/error.hpp"

namespace assay::tests::golden_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string json_text =
    R"({"schema": "assay-golden-1", "scalars": {"eps": 0.1}, "texts": {"kind": "a b"},
  "tensors": {"x": {"dtype": "F64", "shape": [1, 3], "values": [0.1, -2, 1e-300]},
              "ids": {"dtype": "I64", "shape": [2], "values": [-100, 9007199254740993]}}})";

/// The same content as safetensors, under the given schema.
std::string safetensors_bytes(const std::string& schema) {
  spec::safetensors::Header header;
  header.metadata = {{"schema", schema}, {"scalars", R"({"eps": 0.1})"}, {"texts", R"({"kind": "a b"})"}};
  header.tensors = {{"x", "F64", {1, 3}, 0, 24}, {"ids", "I64", {2}, 24, 40}};
  const double x[] = {0.1, -2, 1e-300};
  const std::int64_t ids[] = {-100, 9007199254740993};
  std::string bytes = spec::safetensors::serialize(header);
  bytes.append(reinterpret_cast<const char*>(x), sizeof x);
  return bytes.append(reinterpret_cast<const char*>(ids), sizeof ids);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string refusal(const std::string& bytes, const std::string& path) {
  try {
    parse_golden(bytes, path);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

void expect_content(const GoldenFile& file) {
  EXPECT_THAT(file.tensor("x").shape, ElementsAre(1, 3));
  EXPECT_THAT(file.tensor("x").data, ElementsAre(0.1, -2, 1e-300));
  EXPECT_THAT(file.ids("ids"), ElementsAre(-100, 9007199254740993));  // 2^53 + 1: no way through a double
  EXPECT_THAT(file.shape("ids"), ElementsAre(2));
  EXPECT_EQ(file.scalar("eps"), 0.1);
  EXPECT_EQ(file.text("kind"), "a b");
  EXPECT_THAT(file.tensor_names(), ElementsAre("ids", "x"));
}

TEST(GoldenReader, ReadsJson) { expect_content(parse_golden(json_text, "a.json")); }

TEST(GoldenReader, ReadsSafetensors) {
  expect_content(parse_golden(safetensors_bytes("assay-golden-1"), "a.safetensors"));
}

TEST(GoldenReader, RefusesAnotherSchemaAndSaysHowToRegenerate) {
  for (const std::string& text : {refusal(replaced(json_text, "golden-1", "golden-2"), "ops/a/b.json"),
                                  refusal(safetensors_bytes("assay-golden-2"), "ops/a/b.safetensors")}) {
    EXPECT_THAT(text, HasSubstr("schema is \"assay-golden-2\""));
    EXPECT_THAT(text, HasSubstr("ci/golden --accept ops/a/b"));
  }
  EXPECT_THAT(refusal(replaced(json_text, "schema", "scheme"), "a.json"), HasSubstr("schema"));
}

TEST(GoldenReader, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < json_text.size(); ++size)
    EXPECT_NE(refusal(json_text.substr(0, size), "a.json"), "accepted") << size;
  const auto bytes = safetensors_bytes("assay-golden-1");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(refusal(bytes.substr(0, size), "a.safetensors"), "accepted") << size;
}

TEST(GoldenReader, RefusesValuesThatDoNotFillTheShape) {
  EXPECT_THAT(refusal(replaced(json_text, "[1, 3]", "[1, 4]"), "a.json"),
              HasSubstr("x has another number of values"));
}

TEST(GoldenReader, NamesWhatIsMissing) {
  const auto file = parse_golden(json_text, "a.json");
  for (const auto& get :
       {std::function<void()>([&] { file.tensor("y"); }), std::function<void()>([&] { file.ids("y"); }),
        std::function<void()>([&] { file.scalar("y"); }), std::function<void()>([&] { file.text("y"); })}) {
    try {
      get();
      ADD_FAILURE() << "accepted";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"y\" among:"));
    }
  }
  EXPECT_THROW(file.tensor("ids"), std::runtime_error);
  EXPECT_THROW(file.ids("x"), std::runtime_error);
  EXPECT_THROW(load_golden("ops/none/none.json"), std::runtime_error);
}

}  // namespace
}  // namespace assay::tests::golden_test
