// labels: unit cli
#include "impl/cli/arguments.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::impl::cli::arguments_test {
namespace {

const std::vector<Option> kOptions = {{"seq", "s", "T", "length"}, {"json", "", "", "machine-readable"}};

std::string refusal(const std::vector<std::string>& words) {
  try {
    parse(words, kOptions, "flops").positive("seq", 1);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(ArgumentsCli, OptionsAndOperandsMayBeMixed) {
  const Arguments arguments = parse({"model", "--seq", "128", "--json", "x=y"}, kOptions, "flops");
  EXPECT_EQ(arguments.positional, (std::vector<std::string>{"model", "x=y"}));
  EXPECT_EQ(arguments.positive("seq", 1), 128);
  EXPECT_TRUE(arguments.has("json"));
  EXPECT_EQ(parse({"--seq=7"}, kOptions, "flops").positive("seq", 1), 7);
  EXPECT_EQ(parse({"-s", "7"}, kOptions, "flops").value("seq", ""), "7");
  EXPECT_EQ(parse({}, kOptions, "flops").positive("seq", 5), 5);
}

TEST(ArgumentsCli, AListThatIsGivenAgainGoesOn) {
  const std::vector<Option> options = {{"set", "", "SETTINGS", "what is known", true}};
  EXPECT_EQ(parse({"--set", "a=1", "--set=b=2,c=3"}, options, "audit").value("set", ""), "a=1,b=2,c=3");
}

TEST(ArgumentsCli, TwoDashesEndTheOptionsAndOneDashIsAnOperand) {
  EXPECT_EQ(parse({"-", "--", "--json"}, kOptions, "flops").positional,
            (std::vector<std::string>{"-", "--json"}));
}

TEST(ArgumentsCli, MistakesAreExplained) {
  EXPECT_EQ(refusal({"--jsno"}),
            "unknown option \"--jsno\" of `assay flops`; did you mean \"--json\"? `assay help flops` lists "
            "its options");
  EXPECT_EQ(refusal({"--seq"}), "the option \"--seq\" needs a value: T");
  EXPECT_EQ(refusal({"--json=yes"}), "the option \"--json\" takes no value");
  EXPECT_EQ(refusal({"--train.steps=5"}),
            "\"--train.steps\": settings are written without dashes, as in train.steps=VALUE");
  for (const char* bad : {"0", "-1", "1.5", "x", ""})
    EXPECT_EQ(refusal({std::string("--seq=") + bad}),
              std::string("--seq must be an integer >= 1, not \"") + bad + "\"");
  EXPECT_EQ(refusal({"--seq=99999999999999999999"}),
            "--seq must be at most 9223372036854775807, not \"99999999999999999999\"");
  EXPECT_EQ(refusal({"--seq=8k"}), "--seq \"8k\" may be 8000 or 8192; write the one that is meant");
}

TEST(ArgumentsCli, SettingsGivenToTrainAsOptionsAreShownAsItTakesThem) {
  const auto hint = [](const std::vector<std::string>& words) {
    try {
      parse(words, {{"ranks", "", "N", ""}, {"dump-config", "", "", ""}, {"help", "h", "", ""}}, "train");
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      const std::string text = error.what();
      return text.substr(text.find("; ") + 2);
    }
    return std::string("accepted");
  };
  EXPECT_EQ(hint({"--steps=3"}), "settings are written without dashes: train.steps=3");
  EXPECT_EQ(hint({"--steps", "3"}), "settings are written without dashes: train.steps=3");
  EXPECT_EQ(hint({"--seed=5"}), "settings are written without dashes: train.seed=5");
  EXPECT_EQ(hint({"--learning-rate", "1e-3"}),
            "settings are written without dashes: optimizer.learning_rate=1e-3");
  EXPECT_EQ(hint({"--lr"}), "settings are written without dashes: optimizer.learning_rate=VALUE");
  EXPECT_EQ(hint({"--batch-size=8"}), "settings are written without dashes: batch.sequences=8");
  EXPECT_EQ(hint({"-o", "here"}), "settings are written without dashes: run.directory=here");
  EXPECT_EQ(hint({"--output-dir=here"}), "settings are written without dashes: run.directory=here");
  EXPECT_EQ(hint({"-n", "4"}), "the number of ranks is given as --ranks 4");
  EXPECT_EQ(hint({"--config", "a.toml"}), "a recipe is given by its path alone, as in `assay train a.toml`");
  EXPECT_EQ(hint({"--rank=2"}), "did you mean \"--ranks\"?");
  EXPECT_EQ(hint({"--ranks", "2"}), "accepted");
}

}  // namespace
}  // namespace assay::impl::cli::arguments_test
