// labels: cli golden
// What the command line says of a log, standard input, and input that is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/audit/audit_words.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_options_test {
namespace {

using audit_words::audit_of;
using audit_words::golden;
using audit_words::Outcome;

TEST(AuditOptionsCli, TheCommandLineFillsInWhatALogLeavesOut) {
  const auto json = nlohmann::json::parse(audit_of({golden("llmq_rtx_4090.log"), "--gpus", "1", "--seq",
                                                    "1024", "--model", "qwen3-0.6b", "--json"})
                                              .out);
  EXPECT_EQ(json.at("runs").at(0).at("model"), "qwen3-0.6b");
  EXPECT_EQ(json.at("runs").at(0).at("gpus"), 1);
}

/// A window of some layers leaves nothing out of sequences that are no longer: by the command line, or the
/// log.
TEST(AuditOptionsCli, AModelWithAWindowIsThatOfShorterSequences) {
  const tests::Scratch scratch;
  const std::string config = scratch.path().string() + "/config.json",
                    log = scratch.path().string() + "/run.csv";
  std::ofstream(config) << R"({"model_type": "qwen2", "vocab_size": 32000, "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-05, "sliding_window": 4096,
    "use_sliding_window": true, "max_window_layers": 16, "tie_word_embeddings": false})";
  std::ofstream(log) << "step,loss,tokens_per_second\n1,9.1,5000\n2,8.1,5000\n3,7.1,5000\n";
  const auto audited = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {log, "--model", config, "--gpu", "H100 SXM", "--gpus", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return audit_of(words);
  };
  EXPECT_EQ(audited({"--seq", "4096"}).code, 0) << audited({"--seq", "4096"}).err;
  EXPECT_NE(audited({"--seq", "4096"}).out.find("% exact"), std::string::npos)
      << audited({"--seq", "4096"}).out;
  EXPECT_EQ(audited({"--set", "sequence_length=2048"}).code, 0);
  EXPECT_EQ(audited({"--seq", "4097"}).code, 2);
  EXPECT_NE(audited({}).err.find("(--seq 4096;"), std::string::npos) << audited({}).err;
}

TEST(AuditOptionsCli, OptionsThatSayTwoThingsAreRefused) {
  const std::string log = golden("llmq_rtx_4090.log");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {log, "--gpus", "8", "--set", "gpus=4"},
           {log, "--seq", "4096", "--set", "sequences=8,sequence_length=2048"},
           {log, "--gpus", "8", "--gpus", "4"}}) {
    const Outcome outcome = audit_of(words);
    EXPECT_EQ(outcome.code, 2) << words[1];
    EXPECT_NE(outcome.err.find("; give "), std::string::npos) << outcome.err;
  }
  EXPECT_NE(audit_of({log, "--gpus", "1", "--gpus", "1", "--set", "gpus=1"}).code, 2);
}

/// Every log through a pipe: the same page but for the name.
TEST(AuditOptionsCli, AuditsStandardInput) {
  const std::string program = tests::binary_dir() + "/bin/assay";
  int logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden(""))) {
    const std::string path = entry.path().string();
    if (path.ends_with("README.md")) continue;
    const auto piped = tests::shell("cat '" + path + "' | '" + program + "' audit -");
    const auto named = tests::shell("'" + program + "' audit '" + path + "'");
    EXPECT_EQ(piped.code, named.code) << path << piped.messages;
    std::string expected = named.output;
    for (std::size_t at = 0; (at = expected.find(path, at)) != std::string::npos;)
      expected.replace(at, path.size(), "standard input");
    EXPECT_EQ(piped.output, expected) << path;
    ++logs;
  }
  EXPECT_GE(logs, 13);
  const auto empty = tests::shell("'" + program + "' audit - < /dev/null");
  EXPECT_EQ(empty.code, 65);
  EXPECT_NE(empty.messages.find("standard input: is empty"), std::string::npos) << empty.messages;
}

TEST(AuditOptionsCli, AListMayBeGivenInParts) {
  const std::string log = golden("torchtitan_debug_model.log");
  const Outcome parts = audit_of({log, "--set", "gpus=8", "--set", "gpu=NVIDIA H100 SXM"});
  EXPECT_EQ(parts.out, audit_of({log, "--set", "gpus=8,gpu=NVIDIA H100 SXM"}).out);
  EXPECT_NE(parts.out.find("8 x NVIDIA H100 SXM"), std::string::npos) << parts.out;
  const Outcome twice = audit_of({log, "--set", "gpus=8", "--set", "gpus=4"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("gpus is given twice"), std::string::npos) << twice.err;
}

TEST(AuditOptionsCli, AContradictionSaysWhatTheCommandLineStated) {
  const std::string log = golden("llm_tii_2_gpus.log"),
                    said = "the command line says --gpu H100 SXM, not the log";
  EXPECT_NE(audit_of({log, "--gpu", "H100 SXM"}).out.find(said), std::string::npos);
  EXPECT_EQ(audit_of({log}).out.find("the command line"), std::string::npos);
}

TEST(AuditOptionsCli, AStepThatIsMissingIsNoOptionsDoing) {
  const tests::Scratch scratch;
  const std::string log = scratch.path().string() + "/dropped.csv";
  std::ofstream out(log);
  out << "step,loss,seconds\n";
  for (int step = 1; step <= 40; ++step)
    if (step != 20) out << step << ",2.5,1.0\n";
  out.close();
  const Outcome outcome = audit_of({log, "--map", "step=step,loss=loss,seconds=seconds", "--gpus", "8"});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find("the command line says"), std::string::npos) << outcome.out;
}

TEST(AuditOptionsCli, TheJsonSaysWhatTheCommandLineStated) {
  const std::string log = golden("torchtitan_debug_model.log");
  const auto own = nlohmann::json::parse(audit_of({log, "--json"}).out).at("runs").at(0);
  EXPECT_TRUE(own.at("stated").empty());
  const auto report =
      nlohmann::json::parse(audit_of({log, "--json", "--gpus", "4", "--set", "layers=3"}).out);
  const auto& stated = report.at("runs").at(0).at("stated");
  ASSERT_EQ(stated.size(), 2u);
  EXPECT_EQ(stated.at(0).at("name"), "layers");
  EXPECT_EQ(stated.at(0).at("option"), "--set layers=3");
  EXPECT_EQ(stated.at(1).at("option"), "--gpus 4");
}

TEST(AuditOptionsCli, BadInputIsOneLine) {
  const tests::Scratch scratch;
  const std::string empty = scratch.path().string() + "/empty.log";
  std::ofstream(empty).close();
  const auto refused = [](std::vector<std::string> words, int code) {
    const Outcome outcome = audit_of(std::move(words));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused({}, 2);
  refused({"/no/such.log"}, 2);
  refused({empty}, 65);
  refused({golden("llm_tii_8_gpus.log"), "--model", "nonesuch"}, 2);
  refused({golden("llm_tii_8_gpus.log"), "--gpu", "nonesuch"}, 2);
  refused({golden("llm_tii_8_gpus.log"), "--gpus", "0"}, 2);
}

}  // namespace
}  // namespace assay::impl::cli::audit_options_test
