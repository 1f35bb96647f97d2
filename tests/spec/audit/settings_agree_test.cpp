// labels: unit
// Two lines of one header that say one setting say the same number, or one of them is another run's.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::settings_agree_test {
namespace {

using tests::read_text;

std::string table(const std::string& length, const std::string& processes) {
  return "| micro batch size B    | 64        |\n| sequence length T     | " + length +
         "      |\n| total batch size      | 524288    |\n| num_processes         | " + processes +
         "         |\n";
}
constexpr const char* batch =
    "batch_size B=64 * seq_len T=1024 * num_processes=8 and total_batch_size=524288\n"
    "=> setting grad_accum_steps=1\n";

std::string steps() {
  std::string out;
  for (int i = 1; i <= 4; ++i)
    out += "step    " + std::to_string(i) + "/18865 | loss 10.9" + std::to_string(9 - i) +
           " (+nanz)| norm 15.33 (+nanz)| lr 8.57e-07 | 345.90 ms | 38.6% bf16 MFU | 1515740 tok/s\n";
  return out;
}

TEST(SettingsAgreeSpec, OneSettingOfTwoNumbersContradicts) {
  EXPECT_EQ(judge("settings_agree", read_text(table("1024", "8") + batch + steps())).verdict, Verdict::holds);
  const Result length = judge("settings_agree", read_text(table("2048", "8") + batch + steps()));
  ASSERT_EQ(length.verdict, Verdict::contradicts);
  EXPECT_EQ(length.lines, std::vector<std::int64_t>{5});
  EXPECT_EQ(
      length.causes.at(0).text,
      "sequence_length is 2,048 in line 2 and 1,024 in line 5: one of the two is another run's; the audit "
      "goes by the later one (state it with --set)");
  EXPECT_EQ(judge("settings_agree", read_text(table("1024", "4") + batch + steps())).verdict,
            Verdict::contradicts);
}

TEST(SettingsAgreeSpec, WhatIsNotSetAndWhatIsStatedIsNotAccused) {
  const auto verdict = [](const std::string& log, const char* set = "") {
    return judge("settings_agree", read_text(log, set)).verdict;
  };
  std::string unset = table("1024", "8");
  unset.replace(unset.find("524288"), 6, "    -1");
  EXPECT_EQ(verdict(unset + batch + steps()), Verdict::holds);
  EXPECT_EQ(verdict(table("2048", "8") + batch + steps(), "sequence_length=1024"), Verdict::holds);
  EXPECT_EQ(verdict(steps()), Verdict::cannot_be_judged);
  // A program that ended before its first step, and was started again with another length.
  EXPECT_EQ(verdict(table("2048", "8") + table("1024", "8") + batch + steps()), Verdict::holds);
}

TEST(SettingsAgreeSpec, TheMeshHoldsAsManyRanksAsStart) {
  const auto log = [](const char* ranks) {
    return std::string("[rank 0] INFO     DeviceMesh: dims=['dp_shard'], sizes=[8], world_size=") + ranks +
           "\n[rank 0] INFO     Starting training: step=0, max_steps=100, batch_size=2, grad_accum=4, "
           "world_size=8\n"
           "[rank 0] INFO     [step 1] loss=11.7262 | lr=3.00e-05 | grad_norm=1.878 | tok/s=2,000 | mfu=1.3% "
           "| "
           "mem=60.2/80GB | step_time=131.07s\n";
  };
  EXPECT_EQ(judge("settings_agree", read_text(log("8"))).verdict, Verdict::holds);
  EXPECT_EQ(judge("settings_agree", read_text(log("16"))).lines, std::vector<std::int64_t>{2});
  const std::string unset =
      "[rank 0] INFO     Training config: JobConfig(train=TrainConfig(batch_size=0, max_steps=-1, "
      "grad_accum_steps=4))\n";
  EXPECT_EQ(judge("settings_agree", read_text(unset + log("8"))).verdict, Verdict::holds);
}

TEST(SettingsAgreeSpec, TheHeaderOfARestartIsHeldToo) {
  std::string again = table("1024", "8") + batch + steps();
  for (int i = 1; i <= 4; ++i)
    again.replace(again.find("step    " + std::to_string(i)), 9, "step    " + std::to_string(4 + i));
  const std::string first = table("1024", "8") + batch + steps();
  EXPECT_EQ(judge("settings_agree", read_text(first + again)).verdict, Verdict::holds);
  again.replace(again.find("8         |"), 1, "4");
  EXPECT_EQ(judge("settings_agree", read_text(first + again)).verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::settings_agree_test
