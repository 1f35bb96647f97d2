// labels: cli golden
// The logs of golden/logs/ through the verb: verdicts, corrected numbers, formats, exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "spec/record/write.hpp"
#include "tests/cli/audit/audit_words.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_test {
namespace {

using audit_words::audit_of;
using audit_words::changes_of;
using audit_words::golden;
using audit_words::middle;
using audit_words::Outcome;
using audit_words::result_of;

TEST(AuditCli, TheScalingReportIsAccountingNotSpeed) {
  const Outcome screen = audit_of({golden("llm_tii_2_gpus.log"), golden("llm_tii_8_gpus.log")});
  EXPECT_EQ(screen.code, 1);
  EXPECT_EQ(screen.err, "");
  for (const char* said :
       {"tokens/s is one rank's", "the peak is the sparse one of bf16",
        "accumulation 4 was performed, not 64", "MFU 37.24 % exact, 41.77 % palm_total",
        "MFU 37.18 % exact, 41.70 % palm_total",
        "printed tokens/s 0.998x, MFU 0.250x; corrected tokens/s 3.994x, per GPU 0.998x. accounting"})
    EXPECT_NE(screen.out.find(said), std::string::npos) << said << "\n" << screen.out;
}

/// Where many inputs are wanting, the four that most numbers wait for, and how many more there are.
TEST(AuditCli, NamesTheInputsThatMostNumbersWaitFor) {
  const std::string screen = audit_of({golden("hugging_face_alpaca.log")}).out;
  const std::size_t at = screen.find("  not judged: ");
  ASSERT_NE(at, std::string::npos) << screen;
  const std::string line = screen.substr(at, screen.find('\n', at) - at);
  EXPECT_NE(line.find(", for want of "), std::string::npos) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), ';'), 4) << line;
  EXPECT_NE(line.find("; and of "), std::string::npos) << line;
}

/// One screen for a run: what a log cannot hold is counted, not listed.
TEST(AuditCli, AnAuditIsOneScreen) {
  for (const char* log : {"kempnerforge_13b_8_gpus.log", "torchtitan_debug_model.log", "llm_tii_2_gpus.log",
                          "megatron_mixtral_16_gpus.log", "hugging_face_alpaca.log"}) {
    const std::string screen = audit_of({golden(log)}).out;
    EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 45) << screen;
    const std::size_t at = screen.find("  not judged: ");
    ASSERT_NE(at, std::string::npos) << screen;
    const std::string next = screen.substr(screen.find('\n', at) + 1);
    EXPECT_NE(next.substr(0, next.find('\n')).find("reading"), std::string::npos) << screen;
  }
}

TEST(AuditCli, TheReportItselfHoldsBothRuns) {
  const auto json = nlohmann::json::parse(audit_of({golden("llm_tii_report.md"), "--json"}).out);
  ASSERT_EQ(json.at("runs").size(), 2u);
  for (const auto& one : json.at("runs")) {
    const auto& corrected = one.at("readings").at(0).at("corrected");
    EXPECT_NEAR(middle(corrected.at("mfu_exact")), 0.372, 0.001);
    EXPECT_NEAR(middle(corrected.at("mfu_palm_total")), 0.417, 0.001);
  }
}

TEST(AuditCli, TheJsonLogAsWorkedByHand) {
  const Outcome outcome = audit_of({golden("llm_tii_run_20251115_150458.json"), "--json"});
  EXPECT_EQ(outcome.code, 1);
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& one = json.at("runs").at(0);
  for (const char* id : {"rate_time", "mfu", "parameters", "parameters_nonembedding", "ffn_flops_per_layer"})
    EXPECT_EQ(result_of(one, id).at("verdict"), "contradicts") << id;
  for (const char* id : {"flops_rate", "peak", "flops_per_token", "device_memory", "memory", "first_loss",
                         "average_seconds", "average_mfu", "steps", "mfu_possible", "final"})
    EXPECT_EQ(result_of(one, id).at("verdict"), "holds") << id;
  const auto& best = one.at("readings").at(0);
  EXPECT_EQ(changes_of(best), (std::vector<std::string>{
                                  "\"without embedding\" counts the embedding",
                                  "another shape ran: 16 key/value heads, one for each query head, not 8, "
                                  "and an inner width of 5,461 = int(8 x 2,048 / 3), not 6,144",
                                  "tokens/s is one rank's, and the MFU is made of it"}));
  EXPECT_NEAR(middle(best.at("corrected").at("mfu_palm_total")), 0.735, 0.002);
  EXPECT_NEAR(middle(best.at("corrected").at("mfu_exact")), 0.586, 0.002);
}

/// A number whose cause is its own, in none of the rates: the reading does not say that all stands.
TEST(AuditCli, AReadingNamesTheRowsThatItLeavesToThemselves) {
  const std::string path = testing::TempDir() + "beyond_the_plan.json";
  std::ofstream(path) << R"({"global_step": 20, "max_steps": 20, "num_train_epochs": 1, "log_history": [
    {"epoch": 1.0, "learning_rate": 1e-05, "loss": 1.8, "step": 10},
    {"epoch": 2.0, "learning_rate": 1e-05, "loss": 1.7, "step": 20}]})";
  const Outcome screen = audit_of({path});
  EXPECT_EQ(screen.code, 1);
  EXPECT_NE(screen.out.find("as it stands, but for epochs (the cause stands in the row)"), std::string::npos)
      << screen.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out);
  const auto& reading = json.at("runs").at(0).at("readings").at(0);
  EXPECT_TRUE(reading.at("changes").empty());
  EXPECT_EQ(reading.at("but_for"), nlohmann::json::parse(R"(["epochs"])"));
  EXPECT_TRUE(nlohmann::json::parse(audit_of({golden("llm_tii_run_20251115_150458.json"), "--json"}).out)
                  .at("runs")
                  .at(0)
                  .at("readings")
                  .at(0)
                  .at("but_for")
                  .empty());
}

TEST(AuditCli, RealLogsWithoutContradiction) {
  for (const char* log :
       {"kempnerforge_13b_8_gpus.log", "llmc_gpt2_1558m_8_gpus.log", "llmq_rtx_4090.log",
        "megatron_mixtral_16_gpus.log", "nanogpt_a100.log", "torchtitan_debug_model.log",
        "hugging_face_alpaca.log", "hugging_face_grpo.log", "nanotron_time_per_iteration.log"}) {
    const Outcome outcome = audit_of({golden(log)});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find(": consistent"), std::string::npos) << outcome.out;
  }
}

TEST(AuditCli, ExplainsInvariants) {
  const std::string explained = audit_of({"--explain", "loss_finite"}).out,
                    begin =
                        "loss_finite\n  loss and gradient norm are finite\n  After a NaN no step trains a ";
  EXPECT_EQ(explained.rfind(begin, 0), 0u) << explained;
  EXPECT_EQ(explained.back(), '\n');
  EXPECT_NE(audit_of({"--explain", "all"}).out.find("\nscaling\n"), std::string::npos);
  const Outcome unknown = audit_of({"--explain", "mfuu"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"mfu\"?"), std::string::npos) << unknown.err;
  const Outcome with_log = audit_of({"--explain", "mfu", "t.log"});
  EXPECT_EQ(with_log.code, 2);
  EXPECT_NE(with_log.err.find("--explain reads no log, and would leave out \"t.log\""), std::string::npos)
      << with_log.err;
  const Outcome nothing_near = audit_of({"--explain", "nonesuch"});
  EXPECT_EQ(nothing_near.code, 2);
  EXPECT_NE(nothing_near.err.find("\"nonesuch\"; `assay audit --explain all` explains each"),
            std::string::npos)
      << nothing_near.err;
}

TEST(AuditCli, ALengthThatContradictsIsNamed) {
  const Outcome outcome = audit_of({golden("llm_tii_8_gpus.log"), "--seq", "1024"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("sequences are of 2,048 tokens, not 1,024"), std::string::npos) << outcome.out;
}

TEST(AuditCli, ARunOnTheCpuIsNotOneOfGpus) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/run.jsonl";
  std::ofstream(path) << spec::record::to_json(tests::example_start()) << "\n"
                      << spec::record::to_json(tests::example_step(1)) << "\n";
  const Outcome cpu = audit_of({path});
  EXPECT_NE(cpu.out.find("tiny-llama, 2 ranks on the CPU)"), std::string::npos) << cpu.out;
  EXPECT_NE(cpu.out.find("16,384 /s on all ranks, 8,192 /s per rank (no peak of a CPU, so no MFU)"),
            std::string::npos)
      << cpu.out;
  EXPECT_EQ(cpu.out.find(" GPU"), cpu.out.find(" GPU: the run is on CPUs")) << cpu.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out);
  EXPECT_EQ(json.at("runs").at(0).at("device"), "cpu");
  // The command line knows better than the log.
  EXPECT_NE(audit_of({path, "--gpu", "H200 SXM"}).out.find("2 x NVIDIA H200 SXM)"), std::string::npos);
}

TEST(AuditCli, ALogWithoutStepsIsNotConsistent) {
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string() + "/", table = folder + "table.csv",
                    started = folder + "run.jsonl", report = folder + "audit.xml";
  std::ofstream(table) << "iter,loss,ms\n";
  auto start = tests::example_start();
  start.flops_per_token = 5'311'488;
  std::ofstream(started) << spec::record::to_json(start) << "\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{table, "--map", "step=iter,loss=loss"},
        {table, "--map", "step=iter,loss=loss", "--gpus", "8"},
        {started}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--junit", report});
    const Outcome outcome = audit_of(all);
    EXPECT_EQ(outcome.code, 65) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(words[0] + ": holds no step in 1 line,"), std::string::npos) << outcome.err;
    std::ifstream file(report);
    const std::string xml((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(xml.find("errors=\"1\""), std::string::npos) << xml;
  }
  // A summary of steps that the log does not hold is judged, and so is a start that contradicts itself.
  const std::string summary = folder + "trainer_state.json";
  std::ofstream(summary)
      << "{\n\"log_history\": [{\"train_runtime\": 100.0, \"train_samples_per_second\": 32.0, "
         "\"train_steps_per_second\": 0.5, \"train_loss\": 2.5, \"step\": 50}]}\n";
  EXPECT_EQ(audit_of({summary, "--set", "max_steps=50"}).code, 0) << audit_of({summary}).err;
  EXPECT_EQ(audit_of({summary, "--set", "max_steps=60"}).code, 1);
  EXPECT_EQ(audit_of({started, "--set", "sequences=33"}).code, 1);
}

}  // namespace
}  // namespace assay::impl::cli::audit_test
