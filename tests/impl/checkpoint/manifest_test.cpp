// labels: unit
#include "impl/checkpoint/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::impl::checkpoint::manifest_test {
namespace {

Manifest example() {
  return {.step = 12,
          .tokens = 345,
          .config = "train.steps = 20\n",
          .version = "0.1.0",
          .dtype = "F32",
          .data = {{{.path = "tokens", .bytes = 77, .sample = "ef"}}},
          .parameters = {{.name = "embedding", .dtype = "F32", .shape = {4, 6}}},
          .files = {{.name = "weights.safetensors",
                     .bytes = 99,
                     .hash = "ab",
                     .slices = {{.part = "master",
                                 .parameter = "embedding",
                                 .slice = {1, 2, 3, 3},
                                 .begin = 64,
                                 .hash = "cd"}}}},
          .model = "name = \"a model\"\n"};
}

std::string refusal(const std::string& text) {
  try {
    manifest_from_json(text, "folder/manifest.json");
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = to_json(example());
  return text.replace(text.find(from), from.size(), to);
}

TEST(ManifestImpl, ReadsWhatItWrites) {
  const std::string text = to_json(example());
  EXPECT_EQ(to_json(manifest_from_json(text, "folder/manifest.json")), text);
}

TEST(ManifestImpl, SaysTheValidationLossWhereThereIsOne) {
  Manifest validated = example();
  EXPECT_THAT(to_json(validated), testing::Not(testing::HasSubstr("\"validation\"")));
  validated.validation = {.loss = 0.1 + 0.2, .set = "00ff"};
  const auto read = manifest_from_json(to_json(validated), "folder/manifest.json");
  ASSERT_TRUE(read.validation);
  EXPECT_EQ(read.validation->loss, 0.1 + 0.2);
  EXPECT_EQ(read.validation->set, "00ff");
  EXPECT_EQ(to_json(read), to_json(validated));
}

TEST(ManifestImpl, EarlierVersionsSaidNothingOfTheData) {
  Manifest earlier = example();
  earlier.data.reset();
  EXPECT_THAT(to_json(earlier), testing::Not(testing::HasSubstr("\"data\"")));
  EXPECT_FALSE(manifest_from_json(to_json(earlier), "folder/manifest.json").data.has_value());
  Manifest of_grammar = example();
  of_grammar.data->clear();
  const auto read = manifest_from_json(to_json(of_grammar), "folder/manifest.json");
  ASSERT_TRUE(read.data.has_value());
  EXPECT_TRUE(read.data->empty());
}

TEST(ManifestImpl, SaysWhatFilesAreReadAsAndWhichSettingsFollowed) {
  Manifest manifest = example();
  EXPECT_THAT(to_json(manifest), testing::Not(testing::HasSubstr("\"derived\"")));
  EXPECT_FALSE(manifest_from_json(to_json(manifest), "folder/manifest.json").derived);
  manifest.derived = {"schedule.warmup_steps"};
  manifest.data->push_back(
      {.path = "b", .bytes = 5, .sample = "01", .format = "npy int32", .of = DataFile::validation});
  const auto read = manifest_from_json(to_json(manifest), "folder/manifest.json");
  EXPECT_EQ(read.derived, manifest.derived);
  EXPECT_EQ(read.data->at(0).of, DataFile::training);
  EXPECT_EQ(read.data->at(0).format, "");
  EXPECT_EQ(read.data->at(1).of, DataFile::validation);
  EXPECT_EQ(read.data->at(1).format, "npy int32");
  manifest.derived->clear();  // which is not the same as nothing
  EXPECT_TRUE(manifest_from_json(to_json(manifest), "folder/manifest.json").derived);
}

TEST(ManifestImpl, EarlierVersionsSaidNothingOfTheModel) {
  EXPECT_EQ(manifest_from_json(to_json(example()), "folder/manifest.json").model, "name = \"a model\"\n");
  Manifest earlier = example();
  earlier.model.clear();
  EXPECT_THAT(to_json(earlier), testing::Not(testing::HasSubstr("\"model\"")));
  EXPECT_EQ(manifest_from_json(to_json(earlier), "folder/manifest.json").model, "");
}

TEST(ManifestImpl, C2RefusesWhatIsNotAManifestOfThisSchema) {
  for (const std::string& text :
       {std::string(), std::string("[]"), replaced("\"schema\": 2", "\"schema\": 3"),
        replaced("\"schema\": 2", "\"schema\": 0"), replaced("\"shape\"", "\"size\""),
        replaced("[1, 2, 3, 3]", "[1, 2, 3]"), replaced("\"begin\"", "\"start\""),
        replaced("\"tokens\"", "\"words\""), replaced("345", "\"345\""), replaced("\"xxh3\"", "\"md5\""),
        replaced("77", "\"77\"")})
    EXPECT_THAT(refusal(text), testing::HasSubstr("folder/manifest.json: checkpoint_c2: ")) << text;
}

// What an index says and this version does not know may change what the rest of it means.
TEST(ManifestImpl, C2RefusesWhatIsNotKnownAndWhatIsThereTwice) {
  const auto expect = [](const std::string& text, const char* says) {
    EXPECT_THAT(refusal(text),
                testing::AllOf(testing::HasSubstr("checkpoint_c2: "), testing::HasSubstr(says)));
  };
  for (const char* within : {"\"step\": 12", "\"path\": \"tokens\"", "\"name\": \"embedding\"",
                             "\"name\": \"weights.safetensors\"", "\"part\": \"master\""})
    expect(replaced(within, "\"moment3\": 1, " + std::string(within)), "unknown key");
  expect(replaced("\"part\": \"master\"", "\"part\": \"moment3\""),
         "of the parts master, moment1 and moment2");
  const std::string parameter = R"({"name": "embedding", "dtype": "F32", "shape": [4, 6]})";
  expect(replaced(parameter, parameter + ", " + parameter), "\"embedding\" is there twice");
  Manifest two = example();
  two.files.push_back(two.files[0]);
  expect(to_json(two), "\"weights.safetensors\" is there twice");
  expect(replaced("\"data\": [", "\"data\": {}, \"step\": ["), "occurs twice");
}

TEST(ManifestImpl, C2RefusesNamesThatLeadOutAndNumbersThatAreNone) {
  for (const char* name : {"../weights.safetensors", "/etc/passwd", "..", "", "a\\u0000b"})
    EXPECT_THAT(refusal(replaced("weights.safetensors", name)),
                testing::HasSubstr("must be the name of a file in the checkpoint's folder"))
        << name;
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"step\": 12", "\"step\": -1"},
                                                        {"\"bytes\": 99", "\"bytes\": -99"},
                                                        {"64", "-64"},
                                                        {"[1, 2, 3, 3]", "[1, 2, 3, -3]"},
                                                        {"[4, 6]", "[-4, 6]"},
                                                        {"345", "9223372036854775807"}})
    EXPECT_THAT(refusal(replaced(from, to)), testing::HasSubstr("must be from 0 to 2^60")) << to;
  EXPECT_THAT(refusal(replaced("[4, 6]", "[1152921504606846976, 1152921504606846976]")),
              testing::HasSubstr("no size in 64 bits"));
  EXPECT_THAT(refusal(replaced("[4, 6]", "{\"a\": 4}")), testing::HasSubstr("an array"));
  EXPECT_THAT(refusal(replaced("\"F32\", \"shape\"", "\"F31\", \"shape\"")),
              testing::HasSubstr("a type of safetensors"));
}

}  // namespace
}  // namespace assay::impl::checkpoint::manifest_test
