// labels: unit fault
#include "spec/config/own_model_data.hpp"

#include <gtest/gtest.h>

#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::spec::own_model_data_test {
namespace {

std::string refusal(const std::string& recipe, const std::vector<std::string>& overrides) {
  try {
    require_data_of_own_model(load(recipe, overrides), recipe, overrides);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(OwnModelDataSpec, AModelOfOnesOwnIsNotTrainedOnTheGrammarUnasked) {
  const tests::Scratch scratch;
  const std::string model = scratch.write("mine.toml", ""), folder = scratch.path().string();
  for (const std::string& word : {"model.name=" + model, "model.name=" + folder, "model.weights=" + folder,
                                  std::string("model.weights=/not/there")}) {
    const std::string says = refusal("", {word});
    const std::string value = word.substr(word.find('=') + 1);
    EXPECT_EQ(says.find(word.substr(0, word.find('=')) + " = \"" + value + "\" is a model of your own"), 0u)
        << says;
    EXPECT_NE(says.find("give its token files, data.paths=tokens.bin"), std::string::npos) << says;
    EXPECT_EQ(refusal("", {word, "data.paths=[]"}), "") << word;
    EXPECT_EQ(refusal("", {word, "data.paths=a.bin"}), "") << word;
  }
  EXPECT_NE(refusal("", {"model.name=tiny-llama", "model.weights=" + folder}), "");
  EXPECT_EQ(refusal("", {}), "");
  EXPECT_EQ(refusal("", {"model.name=llama3-8b", "batch.sequence_length=16"}), "");
  EXPECT_EQ(refusal("", {"model.name=no-such-model"}), "") << "find_model says it better";
}

TEST(OwnModelDataSpec, ARecipeMaySayIt) {
  const tests::Scratch scratch;
  const std::string model = scratch.write("mine.toml", ""), name = "model.name = '" + model + "'\n";
  EXPECT_NE(refusal(scratch.write("r.toml", name), {}), "");
  EXPECT_NE(refusal(scratch.write("r.toml", name + "[data]\nprefetch = 3\n"), {}), "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name + "[data]\npaths = []\n"), {}), "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name + "data.paths = ['a.bin']\n"), {}), "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name), {"data.paths=[]"}), "");
}

}  // namespace
}  // namespace assay::spec::own_model_data_test
