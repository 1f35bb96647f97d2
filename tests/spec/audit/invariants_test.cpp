// labels: unit
#include "spec/audit/invariants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "spec/error.hpp"
#include "tests/spec/audit/hand_built_runs.hpp"

namespace assay::spec::audit::invariants_test {
namespace {

Printed counted(double value) { return exactly(value, 1); }
Printed measured(double value, double half) { return {value, value - half, value + half, 1}; }

/// A run in which everything agrees: 4 GPUs, 8 sequences of 2 x 1 x 4, T 1000, 2 s a step.
RunRecord plain() {
  RunRecord r;
  r[Setting::gpus] = counted(4);
  r[Setting::sequence_length] = counted(1000);
  r[Setting::micro] = counted(2);
  r[Setting::accumulation] = counted(1);
  r[Setting::sequences] = counted(8);
  r[Setting::tokens_per_step] = counted(8000);
  r.gpu = "NVIDIA A100-SXM4-80GB";
  r[Setting::flops_per_token] = counted(3.12e10);
  r[Setting::peak_flops] = counted(4 * 312e12);
  for (int i = 1; i <= 12; ++i) {
    Step step;
    step.line = i;
    step[Field::step] = counted(i);
    step[Field::seconds] = measured(2, 0.005);
    step[Field::tokens_per_second] = measured(4000, 0.5);
    step[Field::flops_rate] = measured(1.248e14, 1e11);
    step[Field::mfu] = measured(0.1, 5e-5);
    step[Field::loss] = measured(5 - 0.1 * i, 5e-5);
    step[Field::tokens_total] = counted(8000.0 * i);
    step[Field::elapsed] = measured(2.0 * i + 7, 0.5);
    r.steps.push_back(step);
  }
  r.steps_seen = 12;
  return r;
}

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

TEST(InvariantsSpec, ImpossibleNumbersContradict) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RunRecord r = plain();
  r.steps[3][Field::loss] = exactly(nan, 4);
  EXPECT_EQ(judge("loss_finite", r).lines, std::vector<std::int64_t>{4});
  r = plain();
  r.steps[3][Field::loss] = counted(-0.5);
  EXPECT_EQ(verdict("loss_possible", r), Verdict::contradicts);
  r = plain();
  r.steps[3][Field::mfu] = measured(1.2, 0.01);
  EXPECT_EQ(verdict("mfu_possible", r), Verdict::contradicts);
  r.steps[3][Field::mfu] = exactly(-1);  // "-100.0 %": not measured
  EXPECT_EQ(verdict("mfu_possible", r), Verdict::holds);
}

TEST(InvariantsSpec, ALossBeyondWhatLogitsMakeContradicts) {
  RunRecord r = plain();
  r.steps[3][Field::loss] = exactly(5000, 4);
  const Result beyond = judge("loss_possible", r);
  EXPECT_EQ(beyond.verdict, Verdict::contradicts);
  EXPECT_EQ(beyond.lines, std::vector<std::int64_t>{4});
  ASSERT_EQ(beyond.causes.size(), 1);
  EXPECT_EQ(beyond.causes[0].id, "loss_too_large");
  // A diverged model is worse than log V, and that is told.
  r[Setting::vocab] = exactly(50257);
  r.steps[3][Field::loss] = exactly(120, 4);
  const Result diverged = judge("loss_possible", r);
  EXPECT_EQ(diverged.verdict, Verdict::holds);
  EXPECT_NE(diverged.note.find("diverged"), std::string::npos) << diverged.note;
}

// What is shown as held to is what was tested.
TEST(InvariantsSpec, APossibleLossLiesInTheShownBounds) {
  RunRecord r = plain();
  for (Step& step : r.steps) step[Field::loss] = exactly(2.99);
  r[Setting::loss_floor] = exactly(3.0);  // below by chance
  for (const double last : {2.99, 999.0, 1000.0}) {
    r.steps.back()[Field::loss] = exactly(last);
    const Result result = judge("loss_possible", r);
    EXPECT_EQ(result.verdict, Verdict::holds);
    EXPECT_LE(result.recomputed.low, result.printed);
    EXPECT_GE(result.recomputed.high, result.printed);
  }
}

TEST(InvariantsSpec, ANegativeGradientNormContradicts) {
  RunRecord r = plain();
  r.steps[3][Field::gradient_norm] = exactly(-2.1, 4);
  const Result result = judge("values_possible", r);
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.lines, std::vector<std::int64_t>{4});
  // DeepSpeed's -1 and what loss scaling leaves out are no lengths.
  for (const double other : {-1.0, std::numeric_limits<double>::infinity(), 0.0}) {
    r.steps[3][Field::gradient_norm] = exactly(other, 4);
    EXPECT_EQ(verdict("values_possible", r), Verdict::holds) << other;
  }
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

TEST(InvariantsSpec, ALossTimesTheAccumulation) {
  RunRecord r = plain();
  r[Setting::vocab] = counted(32000);
  r[Setting::accumulation] = counted(8);
  r.steps[0][Field::loss] = measured(10.8, 0.05);
  EXPECT_EQ(verdict("first_loss", r), Verdict::holds);
  r.steps[0][Field::loss] = measured(86.4, 0.05);
  EXPECT_EQ(judge("first_loss", r).causes.at(0).id, "loss_summed_over_passes");
  r.steps[0][Field::loss] = measured(10.8 / std::log(2.0), 0.05);
  EXPECT_EQ(verdict("first_loss", r), Verdict::holds) << "as of a model of 16,384 dimensions";
  r[Setting::width] = counted(2048);
  EXPECT_EQ(judge("first_loss", r).causes.at(0).id, "loss_in_bits");
  // Where no passes are stated a sum of some number of them is as good a name as bad weights.
  r[Setting::accumulation].reset();
  r.steps[0][Field::loss] = measured(54, 0.05);
  const Result open = judge("first_loss", r);
  ASSERT_EQ(open.causes.size(), 2u);
  EXPECT_EQ(open.causes[0].id, "loss_summed_over_passes");
  EXPECT_NE(open.causes[0].text.find("about 5 micro-batches or ranks"), std::string::npos);
  EXPECT_EQ(open.causes[1].id, "loss_bad_start");
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
