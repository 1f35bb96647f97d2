// labels: unit
// Step times and tokens/s that contradict: which of them is wrong, by a clock or without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::clock_and_rates_test {
namespace {

using tests::first_cause;
using tests::read_text;
using tests::result_of;

/// JSON lines of 1,048,576 tokens in 2 s a step: `rate` and `time` times what is true, and a clock.
RunRecord clocked(double rate, double time, double clock) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(4);
  for (int i = 1; i <= 40; ++i) {
    out << R"({"step": )" << i << R"(, "loss": )" << 10 - 0.05 * i;
    if (rate > 0) out << R"(, "tokens_per_second": )" << 524288 * rate;
    if (time > 0) out << R"(, "seconds": )" << 2 * time;
    if (clock > 0) out << R"(, "elapsed": )" << 2.0 * clock * i;
    out << "}\n";
  }
  return read_text(out.str(), "tokens_per_step=1048576,gpus=64");
}

double corrected(const Audit& audit) {
  const auto& rate = audit.readings.front().corrected.tokens_per_second;
  return rate ? rate->middle() : 0;
}

TEST(LinesAndSettingsSpec, ARateThatTheClockRefutesIsNotTheCorrectedOne) {
  EXPECT_EQ(corrected(audit(clocked(1, 1, 1))), 524288);
  // The rate is made of step times, and those leave out what the clock shows.
  const Audit both = audit(clocked(1 / 0.6, 0.6, 1));
  ASSERT_EQ(first_cause(both), "time_leaves_out");
  EXPECT_NEAR(corrected(both) / 524288, 1, 1e-4);  // by the clock as it is printed, to its last digit
  // The rate agrees with the clock, the step times do not.
  const Audit times = audit(clocked(1, 0.6, 1));
  ASSERT_EQ(first_cause(times), "time_leaves_out");
  EXPECT_NEAR(corrected(times) / 524288, 1, 1e-6);
  // The step times agree with the clock, the rate with neither: 7.3 times is no mistake that is known.
  const Audit rates = audit(clocked(7.3, 1, 1));
  EXPECT_TRUE(rates.contradicts);
  EXPECT_NEAR(corrected(rates) / 524288, 1, 1e-6);
}

/// Whether a reading that explains as well as the best holds such a change.
bool told(const Audit& audit, const std::string& id) {
  return std::any_of(audit.readings.begin(), audit.readings.end(), [&](const Reading& reading) {
    return equally(audit.readings.front(), reading) && !reading.changes.empty() &&
           reading.changes.front().id == id;
  });
}

/// A clock that agrees with tokens/s to its last digit leaves no pause that could make up for padding.
TEST(LinesAndSettingsSpec, AClockWithoutPausesTellsAWrongTimeFromPadding) {
  for (const double off : {0.8, 0.9, 1.1, 1.2}) {
    const Audit times = audit(clocked(1, off, 1));
    EXPECT_EQ(first_cause(times), off < 1 ? "time_leaves_out" : "time_beyond_clock") << off;
    EXPECT_FALSE(told(times, "rate_counts_padding")) << off;
    EXPECT_NEAR(corrected(times) / 524288, 1, 1e-6) << off;
    // The step times agree with the clock.
    const Audit rates = audit(clocked(off, 1, 1));
    EXPECT_EQ(first_cause(rates), "rate_counts_padding") << off;
    EXPECT_FALSE(told(rates, "time_leaves_out") || told(rates, "time_beyond_clock")) << off;
    EXPECT_NEAR(corrected(rates) / 524288, 1, 2.5e-5) << off;  // half the last digit of "2.0000" s
  }
}

/// Where nothing but one number stands against the clock, either may be wrong; a clock that shows more may
/// have run through pauses.
TEST(LinesAndSettingsSpec, AClockAgainstOneNumberMayBeWrongItself) {
  const Audit times = audit(clocked(0, 1, 0.5)), rates = audit(clocked(1, 0, 0.5));
  EXPECT_EQ(first_cause(times), "time_beyond_clock");
  EXPECT_EQ(first_cause(rates), "rate_multiple");
  for (const Audit* one : {&times, &rates}) {
    EXPECT_TRUE(told(*one, "clock_other"));
    EXPECT_NEAR(corrected(*one) / 1048576, 1, 1e-3) << "the first reading keeps the clock";
    const auto other = std::find_if(one->readings.begin(), one->readings.end(), [](const Reading& reading) {
      return reading.changes.front().id == "clock_other";
    });
    ASSERT_NE(other, one->readings.end());
    EXPECT_NEAR(other->corrected.tokens_per_second->middle() / 524288, 1, 1e-3) << "the other one the number";
    EXPECT_EQ(result_of(*one, "line_clock").verdict, Verdict::cannot_be_judged);
  }
  EXPECT_FALSE(told(audit(clocked(1, 0, 2)), "clock_other"));
}

TEST(LinesAndSettingsSpec, WithoutAClockEitherOfTimeAndTokensMayBeWrong) {
  for (const double off : {0.8, 1.2})
    for (const Audit& one : {audit(clocked(1, off, 0)), audit(clocked(off, 1, 0))}) {
      EXPECT_TRUE(told(one, "rate_counts_padding")) << off;
      EXPECT_TRUE(told(one, off < 1 ? "time_leaves_out" : "time_beyond_clock")) << off;
    }
}

/// A clock alone against times and rates that agree: what they are made of may be wrong, or the clock.
TEST(LinesAndSettingsSpec, AClockThatTimesAndRatesDenyMayBeWrongItself) {
  const Audit fast = audit(clocked(1 / 1.43, 1.43, 1));
  EXPECT_EQ(first_cause(fast), "clock_other");
  EXPECT_TRUE(told(fast, "time_beyond_clock"));
  EXPECT_NEAR(corrected(fast) / (524288 / 1.43), 1, 1e-4);
  const Audit slow = audit(clocked(1 / 0.6, 0.6, 1));
  EXPECT_EQ(first_cause(slow), "time_leaves_out");
  EXPECT_TRUE(told(slow, "clock_other"));
}

TEST(LinesAndSettingsSpec, NoRateIsGivenWhereNothingTellsWhichNumberIsWrong) {
  const Audit rates = audit(clocked(7.3, 1, 0));
  ASSERT_EQ(first_cause(rates), "unknown");
  const Corrected& told = rates.readings.front().corrected;
  EXPECT_FALSE(told.tokens_per_second || told.per_gpu || told.mfu_exact);
  EXPECT_EQ(told.missing,
            "tokens/s, tokens per step and step time contradict, and nothing tells which is wrong");
  // Every step is logged, so that the rates are those of all the time: 2.3 times is no matter of pauses.
  EXPECT_EQ(judge("rate_wall_clock", clocked(2.3, 0, 1)).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("rate_wall_clock", clocked(1.2, 0, 1)).verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::clock_and_rates_test
