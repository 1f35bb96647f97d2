// labels: cli golden
// What is reported of lines that are not read, of ranks, and of logs too long to be kept whole.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/audit/audit_words.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::cli::audit_lines_test {
namespace {

using audit_words::audit_of;
using audit_words::golden;
using audit_words::Outcome;

TEST(AuditLinesCli, LinesOfASecondTrainerAndRanksAreReported) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/two.log";
  std::ofstream two(path);
  for (int step = 1; step <= 11; ++step)
    for (int rank = 0; rank < 8; ++rank)
      two << "step:  " << step << "  loss:  7.6" << step << "  grad_norm: 26.6250  tps: 10,0" << 50 - rank % 2
          << "\n";
  two << std::ifstream(golden("megatron_mixtral_16_gpus.log")).rdbuf();
  two.close();
  const Outcome screen = audit_of({path});
  EXPECT_NE(screen.out.find("11 steps of each of 8 ranks"), std::string::npos) << screen.out;
  EXPECT_NE(screen.out.find("3 lines from line 89 on look like step lines of megatron"), std::string::npos)
      << screen.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out).at("runs").at(0);
  EXPECT_EQ(json.at("steps"), 11);
  EXPECT_EQ(json.at("ranks"), 8);
  EXPECT_EQ(json.at("not_read").at(0).at("line"), 89);
}

TEST(AuditLinesCli, SettingsBehindAnUnknownPrefixAreReported) {
  const tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/odd.log";
  std::ofstream log(path);
  log << "odd >> batch_size = 12\nodd >> block_size = 1024\n"
         "iter 0: loss 10.9876, time 140.00ms, mfu 37.00%\niter 1: loss 9.1234, time 134.20ms, mfu 37.10%\n";
  log.close();
  const Outcome screen = audit_of({path});
  EXPECT_NE(screen.out.find("2 lines from line 1 on say settings behind \"odd >> \""), std::string::npos)
      << screen.out;
  const auto json = nlohmann::json::parse(audit_of({path, "--json"}).out).at("runs").at(0);
  EXPECT_EQ(json.at("settings_behind").at("prefix"), "odd >> ");
  EXPECT_EQ(json.at("settings_behind").at("count"), 2);
  EXPECT_TRUE(nlohmann::json::parse(audit_of({golden("megatron_mixtral_16_gpus.log"), "--json"}).out)
                  .at("runs")
                  .at(0)
                  .at("settings_behind")
                  .is_null());
}

/// Twelve lines of torchtitan's, of several widths, as `cut` leaves each of them.
template <class Cut>
std::string log_of(const tests::Scratch& scratch, const Cut& cut) {
  std::string path = scratch.path().string() + "/cut.log";
  std::ofstream log(path);
  for (int i = 1; i <= 12; ++i) {
    const std::string minute = std::to_string(10 + i);
    const std::string line =
        "[titan] 2025-07-21 15:" + minute + ":52,074 - root - INFO - step: " + std::to_string(10 * i) +
        (i < 5 ? "  loss: 11." : "  loss: 9.") + minute +
        "00  grad_norm:  1.9078  memory: 75.14GiB(95.00%)  tps: " +
        (i == 1 ? "881" : "6,26" + std::to_string(i % 10)) + "  tflops: 362.52  mfu: 36.66%";
    log << cut(line, i);
  }
  return path;
}

nlohmann::json cut_lines_of(const std::string& path) {
  return nlohmann::json::parse(audit_of({path, "--json"}).out).at("runs").at(0).at("cut_lines");
}

TEST(AuditLinesCli, LinesThatWereCutAreReported) {
  const tests::Scratch scratch;
  const std::string cut =
      log_of(scratch, [](const std::string& line, int) { return line.substr(0, 115) + "...\n"; });
  const Outcome screen = audit_of({cut});
  EXPECT_NE(
      screen.out.find("\n  12 lines could not be read to the end: cut at column 118, the first is line 1; "
                      "the number that is cut is not judged\n"),
      std::string::npos)
      << screen.out;
  EXPECT_EQ(screen.out.find("rests of lines"), std::string::npos) << screen.out;
  EXPECT_EQ(cut_lines_of(cut),
            nlohmann::json::parse(R"({"count": 12, "line": 1, "joined": 0, "column": 118})"));
}

TEST(AuditLinesCli, OneLineThatIsCutIsReportedWithoutAColumn) {
  const tests::Scratch scratch;
  const std::string one = log_of(scratch, [](const std::string& line, int i) {
    return (i == 7 ? line.substr(0, line.find("tps: ") + 8) + "..." : line) + "\n";
  });
  const Outcome screen = audit_of({one});
  EXPECT_NE(screen.out.find("\n  1 line could not be read to the end: cut, the first is line 7; "),
            std::string::npos)
      << screen.out;
  EXPECT_EQ(cut_lines_of(one), nlohmann::json::parse(R"({"count": 1, "line": 7, "joined": 0, "column": 0})"));
}

TEST(AuditLinesCli, LinesThatWereWrappedAreReported) {
  const tests::Scratch scratch;
  const std::string wrapped = log_of(scratch, [](const std::string& line, int) {
    return line.substr(0, 110) + "\n" + line.substr(110) + "\n";
  });
  const Outcome screen = audit_of({wrapped});
  EXPECT_NE(screen.out.find("\n  12 lines are rests of lines that were wrapped at column 110, and are read "
                            "with them\n"),
            std::string::npos)
      << screen.out;
  EXPECT_EQ(screen.out.find("to the end"), std::string::npos) << screen.out;
  EXPECT_EQ(cut_lines_of(wrapped),
            nlohmann::json::parse(R"({"count": 0, "line": 0, "joined": 12, "column": 110})"));
}

TEST(AuditLinesCli, OfWholeLinesNothingIsReported) {
  const tests::Scratch scratch;
  const std::string whole = log_of(scratch, [](const std::string& line, int) { return line + "\n"; });
  const Outcome screen = audit_of({whole});
  EXPECT_EQ(screen.out.find("to the end"), std::string::npos) << screen.out;
  EXPECT_EQ(screen.out.find("rests of lines"), std::string::npos) << screen.out;
  EXPECT_EQ(cut_lines_of(whole),
            nlohmann::json::parse(R"({"count": 0, "line": 0, "joined": 0, "column": 0})"));
}

/// Which steps of a long log the verdicts rest on, in every output; a wrong line between them is found.
TEST(AuditLinesCli, ALongLogSaysWhichOfItsStepsAreJudged) {
  tests::Scratch scratch;
  const std::string path = scratch.path().string() + "/long.csv", report = scratch.path().string() + "/a.xml";
  const auto write = [&](int wrong) {
    std::ofstream out(path);
    out << "step,loss,seconds,tokens_per_second\n";
    for (int i = 1; i <= 20'000; ++i)
      out << i << ",2.5," << 0.25 + 0.001 * (i % 9) << ","
          << (i == wrong ? 1.3 : 1) * 4096 / (0.25 + 0.001 * (i % 9)) << "\n";
  };
  const std::vector<std::string> words = {path, "--set", "tokens_per_step=4096", "--junit", report};
  write(0);
  const Outcome screen = audit_of(words);
  EXPECT_EQ(screen.code, 0) << screen.out << screen.err;
  EXPECT_NE(
      screen.out.find("of 20,000 steps: the first and last, evenly spaced ones, and those whose numbers "
                      "stand apart from the first lines' (0)"),
      std::string::npos)
      << screen.out;
  const auto json =
      nlohmann::json::parse(audit_of({path, "--set", "tokens_per_step=4096", "--json"}).out).at("runs").at(0);
  EXPECT_EQ(json.at("steps_seen"), 20'000);
  EXPECT_LT(json.at("steps_judged"), 10'000);
  EXPECT_EQ(json.at("steps_left_out"), 0);
  std::ostringstream xml;
  xml << std::ifstream(report).rdbuf();
  EXPECT_NE(xml.str().find("<property name=\"steps_seen\" value=\"20000\"/>"), std::string::npos)
      << xml.str();
  write(7'003);
  const Outcome wrong = audit_of(words);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("(line 7004)"), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("stand apart from the first lines' (1)"), std::string::npos) << wrong.out;
}

}  // namespace
}  // namespace assay::impl::cli::audit_lines_test
