// labels: unit
#include "spec/audit/invariants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "spec/error.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"
#include "tests/spec/audit/run_that_agrees.hpp"

namespace assay::spec::audit::invariants_test {
namespace {

using tests::counted;
using tests::measured;
using tests::plain;

Verdict verdict(std::string_view id, const RunRecord& record) { return judge(id, record).verdict; }

TEST(InvariantsSpec, ARunThatAgreesIsConsistent) {
  EXPECT_TRUE(consistent(plain())) << contradictions(plain());
  for (const char* id : {"sequences", "tokens_per_step", "rate_time", "flops_rate", "mfu", "tokens_total",
                         "wall_clock", "steps"})
    EXPECT_EQ(verdict(id, plain()), Verdict::holds) << id;
}

TEST(InvariantsSpec, EveryIdIsOnceAndExplained) {
  std::set<std::string_view> ids;
  for (const Invariant& invariant : invariants()) {
    EXPECT_TRUE(ids.insert(invariant.id).second) << invariant.id;
    EXPECT_FALSE(invariant.statement.empty()) << invariant.id;
    EXPECT_FALSE(invariant.explains.empty()) << invariant.id;
  }
  EXPECT_EQ(judge(RunRecord()).size(), ids.size() - 1);  // scaling needs two runs
}

TEST(InvariantsSpec, AnEmptyRecordCannotBeJudged) {
  for (const Result& result : judge(RunRecord()))
    EXPECT_EQ(result.verdict, Verdict::cannot_be_judged) << result.id;
  EXPECT_FALSE(consistent(RunRecord()));
  EXPECT_EQ(contradictions(RunRecord()), "");
}

TEST(InvariantsSpec, C1AnUnknownIdIsRefusedWithTheNearest) {
  try {
    judge("mfuu", RunRecord());
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), "audit_c1");
    EXPECT_NE(std::string(error.what()).find("\"mfu\""), std::string::npos);
  }
}

TEST(InvariantsSpec, RoundingAloneNeverContradicts) {
  // 3,997.4 tokens/s for a time printed as 2.00 s: the time may have been 2.0013 s.
  RunRecord r = plain();
  for (Step& step : r.steps)
    step[Field::tokens_per_second] = measured(3997, 0.5), step[Field::flops_rate].reset(),
    step[Field::mfu].reset();
  EXPECT_TRUE(consistent(r)) << contradictions(r);
  for (Step& step : r.steps) step[Field::tokens_per_second] = measured(3900, 0.5);
  EXPECT_EQ(verdict("rate_time", r), Verdict::contradicts);
}

TEST(InvariantsSpec, APrinterThatCutsDigitsOffIsForgiven) {
  RunRecord r = plain();
  for (Step& step : r.steps) step[Field::seconds] = measured(1.99, 0.005);  // 2.0 cut from 1.9999
  EXPECT_EQ(verdict("rate_time", r), Verdict::holds);
}

TEST(InvariantsSpec, AnUnlabelledRateMayBeOneGpus) {
  RunRecord r = plain();
  for (Step& step : r.steps) {
    step[Field::tokens_per_second] = measured(1000, 0.5);
    step[Field::flops_rate] = measured(3.12e13, 1e11);
  }
  EXPECT_TRUE(consistent(r)) << contradictions(r);
  EXPECT_EQ(judge("rate_time", r).note, "tokens/s is one GPU's; the FLOP/s are one GPU's");
  r.format.tokens_per_second = Scope::all;  // the trainer is known to print all
  EXPECT_EQ(verdict("rate_time", r), Verdict::contradicts);
}

TEST(InvariantsSpec, OneOverAllContradictsHoweverItIsRead) {
  RunRecord r = plain();
  for (Step& step : r.steps) step[Field::mfu] = measured(0.025, 5e-5), step[Field::flops_rate].reset();
  const Result result = judge("mfu", r);
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_NEAR(result.off_by, 0.25, 1e-3);
  EXPECT_EQ(result.contradicted, 12);
}

TEST(InvariantsSpec, StepsMissingDoubledAndOutOfOrder) {
  RunRecord r = plain();
  r.steps.erase(r.steps.begin() + 5);
  r.steps_seen = 11;
  EXPECT_EQ(judge("steps", r).causes.at(0).id, "step_missing");
  r = plain();
  r.steps.insert(r.steps.begin() + 5, r.steps[5]);
  EXPECT_EQ(judge("steps", r).causes.at(0).id, "step_doubled");
  r = plain();
  std::swap(r.steps[5], r.steps[6]);
  EXPECT_EQ(judge("steps", r).causes.at(0).id, "steps_out_of_order");
}

TEST(InvariantsSpec, ARestartIsSeenAsOneAndMustGoOn) {
  RunRecord r = plain();
  for (int i = 9; i <= 12; ++i) r.steps.push_back(r.steps[static_cast<std::size_t>(i - 1)]);
  EXPECT_EQ(judge("steps", r).causes.at(0).id, "steps_copied");
  for (std::size_t i = 12; i < r.steps.size(); ++i) r.steps[i][Field::seconds]->value *= 1.001;
  EXPECT_EQ(verdict("steps", r), Verdict::holds);
  EXPECT_EQ(judge("steps", r).note, "1 restart from an earlier step");
  EXPECT_EQ(verdict("resume", r), Verdict::holds);
  for (std::size_t i = 12; i < r.steps.size(); ++i)
    r.steps[i][Field::tokens_total]->value -= 40000,
        r.steps[i][Field::tokens_total] = counted(r.steps[i][Field::tokens_total]->value);
  EXPECT_EQ(judge("resume", r).causes.at(0).id, "tokens_not_resumed");
}

TEST(InvariantsSpec, StepTimesThatLeaveOutTimeContradictTheClock) {
  RunRecord r = plain();
  for (std::size_t i = 0; i < r.steps.size(); ++i)
    r.steps[i][Field::elapsed] = measured(3.0 * static_cast<double>(i + 1), 0.05);
  EXPECT_EQ(verdict("wall_clock", r), Verdict::contradicts);
  for (std::size_t i = 0; i < r.steps.size(); ++i)  // one long evaluation is no contradiction
    r.steps[i][Field::elapsed] = measured(2.0 * static_cast<double>(i + 1) + (i > 6 ? 90 : 0), 0.05);
  EXPECT_EQ(verdict("wall_clock", r), Verdict::holds);
}

TEST(InvariantsSpec, LearningRateByAnyUsualNumbering) {
  RunRecord r = plain();
  r[Setting::learning_rate] = counted(1e-3);
  r[Setting::learning_rate_min] = counted(1e-4);
  r[Setting::warmup_steps] = counted(4);
  r[Setting::decay_steps] = counted(12);
  r.schedule = "cosine";
  const auto write = [&](double shift, double warmup_factor) {
    for (int i = 1; i <= 12; ++i) {
      const double u = i + shift, x = std::clamp((u - 4) / 8, 0.0, 1.0);
      const double rate = u < 4 ? 1e-3 * u / 4 * warmup_factor : 1e-4 + 9e-4 * (1 + std::cos(M_PI * x)) / 2;
      r.steps[static_cast<std::size_t>(i - 1)][Field::learning_rate] = measured(rate, 5e-9);
    }
  };
  for (const double shift : {0.0, -1.0, 1.0}) {
    write(shift, 1);
    EXPECT_EQ(verdict("learning_rate", r), Verdict::holds) << shift;
  }
  for (Step& step : r.steps)
    step[Field::learning_rate] = measured(step[Field::learning_rate]->value * 4, 5e-9);
  const Result result = judge("learning_rate", r);
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.causes.at(0).id, "rate_times_ranks");
}

TEST(InvariantsSpec, MemoryBeyondTheDevice) {
  RunRecord r = plain();
  r[Setting::gpu_memory] = measured(80e9, 5e7);
  r.steps[2][Field::memory_peak] = measured(70e9, 5e6);
  EXPECT_EQ(verdict("memory", r), Verdict::holds);
  r.steps[2][Field::memory_peak] = measured(280e9, 5e6);
  EXPECT_EQ(judge("memory", r).causes.at(0).id, "memory_of_all_gpus");
}

TEST(InvariantsSpec, ASummarySpeaksOfTheStepsSinceItsOwnStart) {
  // Stopped after step 8 (line 8), went on to step 12: each start sums up its own steps.
  RunRecord r = plain();
  for (std::size_t i = 8; i < 12; ++i) r.steps[i].line += 2;
  r.restarts.push_back({10, 8});
  r[Setting::total_tokens] = exactly(8 * 8000.0, 9);
  r[Setting::total_seconds] = Printed{16.5, 16.45, 16.55, 9};
  EXPECT_EQ(verdict("total_tokens", r), Verdict::holds);
  EXPECT_EQ(verdict("total_seconds", r), Verdict::holds);
  r[Setting::total_tokens] = exactly(4 * 8000.0, 15);
  EXPECT_EQ(verdict("total_tokens", r), Verdict::holds);
  r[Setting::total_tokens] = exactly(5 * 8000.0, 15);
  EXPECT_EQ(verdict("total_tokens", r), Verdict::contradicts);
}

TEST(InvariantsSpec, TheScalingReportContradictsItself) {
  for (const int gpus : {2, 8}) {
    const RunRecord r = tests::scaling_report_run(gpus);
    EXPECT_FALSE(consistent(r));
    EXPECT_EQ(verdict("peak", r), Verdict::contradicts);
    for (const char* id : {"sequences", "tokens_per_step", "flops_rate", "expected_rate", "flops_per_token",
                           "first_loss", "learning_rate", "memory", "device_memory"})
      EXPECT_EQ(verdict(id, r), Verdict::holds) << id;
  }
  EXPECT_EQ(verdict("rate_time", tests::scaling_report_run(2)), Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::invariants_test
