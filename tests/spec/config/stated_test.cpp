// labels: unit fault
#include "spec/config/stated.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::spec::stated_test {
namespace {

std::string refusal(const std::string& recipe, const std::vector<std::string>& overrides) {
  try {
    Loaded loaded = load_all(recipe, overrides);
    require_stated(loaded);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

const std::vector<std::string> shape = {"train.steps=10", "batch.sequence_length=16",
                                        "optimizer.learning_rate=1e-3"};

std::vector<std::string> with_shape(std::vector<std::string> words) {
  words.insert(words.end(), shape.begin(), shape.end());
  return words;
}

TEST(StatedSpec, AModelOfOnesOwnIsNotTrainedOnTheGrammarUnasked) {
  const tests::Scratch scratch;
  const std::string model = scratch.write("mine.toml", ""), folder = scratch.path().string();
  for (const std::string& word : {"model.name=" + model, "model.name=" + folder, "model.weights=" + folder,
                                  std::string("model.weights=/not/there")}) {
    const std::string says = refusal("", with_shape({word}));
    const std::string value = word.substr(word.find('=') + 1);
    EXPECT_EQ(says.find(word.substr(0, word.find('=')) + " = \"" + value + "\" is a model of your own"), 0u)
        << says;
    EXPECT_NE(says.find("\n  data.paths=tokens.bin "), std::string::npos) << says;
    EXPECT_EQ(refusal("", with_shape({word, "data.paths=[]"})), "") << word;
    EXPECT_EQ(refusal("", with_shape({word, "data.paths=a.bin"})), "") << word;
    EXPECT_EQ(refusal("", with_shape({word, "data.sources=[{path='a.bin', weight=1}]"})), "") << word;
  }
  EXPECT_NE(refusal("", with_shape({"model.name=tiny-llama", "model.weights=" + folder})), "");
  EXPECT_EQ(refusal("", {}), "");
  EXPECT_EQ(refusal("", with_shape({"model.name=llama3-8b"})), "");
  EXPECT_EQ(refusal("", {"model.name=no-such-model"}), "") << "find_model says it better";
}

TEST(StatedSpec, ARecipeMaySayIt) {
  const tests::Scratch scratch;
  const std::string model = scratch.write("mine.toml", ""), name = "model.name = '" + model + "'\n";
  EXPECT_NE(refusal(scratch.write("r.toml", name), shape), "");
  EXPECT_NE(refusal(scratch.write("r.toml", name + "[data]\nprefetch = 3\n"), shape), "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name + "[data]\npaths = []\n"), shape), "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name + "data.paths = ['a.bin']\n"), shape), "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name + "[[data.sources]]\npath = 'a.bin'\nweight = 1\n"), shape),
            "");
  EXPECT_EQ(refusal(scratch.write("r.toml", name), with_shape({"data.paths=[]"})), "");
}

/// The defaults are the demo model's: any other says its steps, length and rate, and hears of all at once.
TEST(StatedSpec, AnyOtherModelSaysItsStepsItsLengthAndItsRate) {
  const tests::Scratch scratch;
  const std::string model = scratch.write("mine.toml", ""), folder = scratch.path().string();
  EXPECT_EQ(
      refusal("", {"model.name=" + model}),
      "model.name = \"" + model +
          "\" is a model of your own, and a run of it has to say:\n"
          "  data.paths=tokens.bin         its token files (recipes/own-text/tokenise.py makes them from "
          "text); [] for text of the built-in grammar, one byte a token\n"
          "  batch.sequence_length=2048    tokens of a sequence, at most the model's context\n"
          "  train.steps=1000              optimizer steps, or by tokens, train.tokens=100M\n"
          "  optimizer.learning_rate=3e-4  usual from initial weights: 6e-4 for 100 million parameters, "
          "3e-4 for a billion, 1e-4 for tens of them");
  const std::string weights = refusal("", {"model.weights=" + folder, "data.paths=a.bin"});
  EXPECT_NE(weights.find("\n  optimizer.learning_rate=1e-5  usual to go on from weights"), std::string::npos)
      << weights;
  const std::string built_in = refusal("", {"model.name=llama3-8b"});
  EXPECT_EQ(built_in.find("model.name = \"llama3-8b\" is not the demo's model, which the defaults suit"), 0u)
      << built_in;
  EXPECT_EQ(built_in.find("data.paths"), std::string::npos) << built_in;
  for (std::size_t left_out = 0; left_out < shape.size(); ++left_out) {
    std::vector<std::string> words = {"model.name=llama3-8b"};
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (i != left_out) words.push_back(shape[i]);
    const std::string says = refusal("", words);
    EXPECT_NE(says.find("\n  " + shape[left_out].substr(0, shape[left_out].find('='))), std::string::npos)
        << says;
    EXPECT_EQ(std::ranges::count(says, '\n'), 1) << says;
    // One that is wrong is stated.
    words.push_back(shape[left_out].substr(0, shape[left_out].find('=')) + "=x");
    EXPECT_EQ(refusal("", words), "");
  }
  EXPECT_EQ(refusal("", {"model.name=llama3-8b", "train.tokens=1M", shape[1], shape[2]}), "");
}

}  // namespace
}  // namespace assay::spec::stated_test
