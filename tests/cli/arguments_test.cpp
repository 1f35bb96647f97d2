// labels: unit cli property
#include "impl/cli/arguments.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

/// Whatever they hold: nothing stands between them.
RC_GTEST_PROP(ArgumentsCli, ValuesOfAnOptionThatIsGivenAgainStayApart,
              (const std::vector<std::string>& texts)) {
  const std::vector<Option> options = {{"prompt", "", "TEXT", "", true}, {"json", "", "", ""}};
  std::vector<std::string> words = {"--json"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % 2) {
      words.push_back("--prompt=" + texts[i]);
    } else {
      words.push_back("--prompt");
      words.push_back(texts[i]);
    }
  }
  const Arguments read = parse(words, options, "generate");
  RC_ASSERT(read.values("prompt") == texts);
  RC_ASSERT(parse(read.words(), options, "generate").values("prompt") == texts);
  RC_ASSERT(read.has("json"));
}

TEST(ArgumentsCli, APromptMayHoldAnyControlCharacter) {
  const std::vector<Option> options = {{"prompt", "", "TEXT", "", true}};
  EXPECT_EQ(parse({"--prompt",
                   "a\x1e"
                   "b",
                   "--prompt="},
                  options, "generate")
                .values("prompt"),
            (std::vector<std::string>{"a\x1e"
                                      "b",
                                      ""}));
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
  // One rule for every whole number (spec/text/amount.hpp): letters are decimal, Ki and Mi are not.
  EXPECT_EQ(parse({"--seq=8k"}, kOptions, "flops").positive("seq", 1), 8000);
  EXPECT_EQ(parse({"--seq=8Ki"}, kOptions, "flops").positive("seq", 1), 8192);
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
