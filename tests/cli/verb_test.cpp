// labels: unit cli
#include "impl/cli/verb.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "spec/config/keys.hpp"

namespace assay::impl::cli::verb_test {
namespace {

struct Result {
  int code;
  std::string out, err;
};

Result result_of(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  const int code = run(words, {out, err});
  return {code, out.str(), err.str()};
}

TEST(VerbCli, MisspeltVerbsGetTheNearestOne) {
  const Result result = result_of({"trian"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "assay: error: unknown verb \"trian\"; did you mean \"train\"? `assay help` lists the verbs\n");
  EXPECT_EQ(result_of({"zzzzzz"}).err,
            "assay: error: unknown verb \"zzzzzz\"; `assay help` lists the verbs\n");
}

TEST(VerbCli, HelpIsDataWhenAskedForAndAMessageWhenNothingIsSaid) {
  EXPECT_EQ(result_of({}).code, 2);
  EXPECT_EQ(result_of({}).out, "");
  EXPECT_EQ(result_of({"help"}).out, result_of({}).err);
  EXPECT_EQ(result_of({"--help"}).out, help_text());
  EXPECT_NE(help_text().find("75 saved on request: `assay resume FOLDER` goes on"), std::string::npos);
  for (const Verb& verb : verbs()) {
    EXPECT_EQ(result_of({verb.name, "--help"}).out, result_of({"help", verb.name}).out);
    EXPECT_NE(help_text().find("  " + verb.name + " "), std::string::npos);
    EXPECT_FALSE(verb.examples.empty()) << verb.name;
  }
}

TEST(VerbCli, HelpFitsAScreen) {
  std::vector<std::string> texts = {help_text()};
  for (const Verb& verb : verbs()) texts.push_back(help_text(verb));
  for (const std::string& text : texts) {
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110u) << line;
  }
}

TEST(VerbCli, VersionIsOneLine) {
  EXPECT_EQ(result_of({"version"}).out, "assay " + program_version() + "\n");
  EXPECT_EQ(result_of({"--version"}).out, result_of({"version"}).out);
  EXPECT_EQ(nlohmann::json::parse(result_of({"version", "--json"}).out)["version"], program_version());
}

TEST(VerbCli, ConfigListsEveryKey) {
  const std::string out = result_of({"config"}).out;
  for (const spec::Key& key : spec::keys())
    EXPECT_NE(("\n" + out).find("\n" + key.name + " = "), std::string::npos) << key.name;
  const auto json = nlohmann::json::parse(result_of({"config", "--json"}).out);
  EXPECT_EQ(json.size(), spec::keys().size());
  EXPECT_EQ(nlohmann::json::parse(result_of({"config", "--json", "batch"}).out).size(), 4u);
  EXPECT_EQ(result_of({"config", "trian.steps"}).err,
            "assay: error: no setting starts with \"trian.steps\"; did you mean \"train.steps\"? `assay "
            "config` lists "
            "every setting\n");
}

TEST(VerbCli, SettingsAreJudgedBeforeAnyTrainerStarts) {
  EXPECT_EQ(result_of({"train", "batch.micro=5"}).code, 2);
  EXPECT_NE(result_of({"train", "batch.micro=5"}).err.find("or batch.micro to 4 or 8"), std::string::npos);
  EXPECT_NE(result_of({"train", "batch.sequence_length=129"}).err.find("exceeds the context"),
            std::string::npos);
  EXPECT_NE(result_of({"train", "model.name=tiny-lama"}).err.find("tiny-llama"), std::string::npos);
  EXPECT_NE(result_of({"train", "a.toml", "b.toml"}).err.find("two recipes"), std::string::npos);
  EXPECT_NE(result_of({"train", "no.toml"}).err.find("no.toml: cannot read this recipe"), std::string::npos);
  EXPECT_NE(result_of({"train", "--ranks=0"}).err.find(">= 1"), std::string::npos);
}

TEST(VerbCli, WhatWouldBeIgnoredIsRefused) {
  EXPECT_EQ(result_of({"version", "extra"}).code, 2);
  EXPECT_NE(result_of({"doctor", "extra"}).err.find("takes no argument"), std::string::npos);
  EXPECT_NE(result_of({"train", ""}).err.find("an empty argument"), std::string::npos);
}

TEST(VerbCli, WhatIsEchoedIsCut) {
  const std::string digits(5000, '7');
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{digits},
                                             {"train", "train.steps=" + digits},
                                             {"train", "optimizer.clip=-" + digits},
                                             {"train", "schedule.kind=" + digits},
                                             {"train", "batch.sequences=1", digits + "=1"},
                                             {"train", "--" + digits},
                                             {"train", "--steps=" + digits},
                                             {"train", "--ranks=" + digits},
                                             {"train", "model.name=" + digits},
                                             {"train", digits + ".toml", "b.toml"},
                                             {"train", digits + ".toml"},
                                             {"train", "data.dtype=" + digits},
                                             {"config", digits},
                                             {"doctor", digits},
                                             {"completion", digits},
                                             {"flops", digits},
                                             {"flops", "llama3-8b", "--seq", digits},
                                             {"flops", "llama3-8b", "--hardware", digits},
                                             {"audit", "--explain", digits},
                                             {"audit", digits},
                                             {"report", digits},
                                             {"claims", digits}}) {
    const Result result = result_of(words);
    EXPECT_EQ(result.code, words[0] == "report" ? 74 : 2) << words[0];
    EXPECT_LE(result.err.size(), 1100u) << result.err;
    EXPECT_EQ(result.err.find(std::string(300, '7')), std::string::npos) << words[0] << ": " << result.err;
  }
}

TEST(VerbCli, DumpConfigIsARecipe) {
  const Result result = result_of({"train", "--dump-config", "train.steps=77"});
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("\nsteps = 77\n"), std::string::npos);
}

TEST(VerbCli, MissingRecordsAreIoErrors) {
  const Result result = result_of({"report", "/no/such/run"});
  EXPECT_EQ(result.code, 74);
  EXPECT_EQ(result.err,
            "assay: error: /no/such/run: cannot open this record: No such file or directory; give a run's "
            "folder or its run.jsonl\n");
  EXPECT_EQ(result_of({"report"}).code, 2);
}

TEST(VerbCli, CompletionTakesOneKnownShell) {
  EXPECT_EQ(result_of({"completion", "bahs"}).err,
            "assay: error: `assay completion` takes one shell: bash, zsh or fish; did you mean \"bash\"?\n");
  EXPECT_EQ(result_of({"completion"}).code, 2);
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = result_of({"completion", shell}).out;
    for (const Verb& verb : verbs())
      EXPECT_NE(script.find(verb.name), std::string::npos) << shell << verb.name;
    for (const spec::Key& key : spec::keys())
      EXPECT_NE(script.find(key.name + "="), std::string::npos) << key.name;
  }
}

}  // namespace
}  // namespace assay::impl::cli::verb_test
