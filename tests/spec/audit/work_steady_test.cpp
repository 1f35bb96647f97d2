// labels: unit
// Numbers of single lines against one another where no setting says in which relation they stand, and against
// the stamps of their lines. The peak that they make: peak_steady_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/lines_without_settings.hpp"

namespace assay::spec::audit::work_steady_test {
namespace {

using lines_without_settings::Change;
using lines_without_settings::Line;
using lines_without_settings::llmc;
using lines_without_settings::megatron;
using lines_without_settings::named;
using lines_without_settings::nanotron;
using lines_without_settings::titan;

TEST(WorkSteadySpec, LinesWithoutSettingsHold) {
  const Change none = [](Line&) {};
  for (const int lines : {3, 4, 9, 40}) {
    EXPECT_EQ(named(titan(lines, -1, none)), "holds") << lines;
    EXPECT_EQ(named(megatron(lines, -1, none)), "holds") << lines;
    EXPECT_EQ(named(megatron(lines, -1, none, true)), "holds") << lines;
    EXPECT_EQ(named(nanotron(lines, -1, none)), "holds") << lines;
    EXPECT_EQ(named(llmc(lines + 1, -1, none)), "holds") << lines;
    for (const RunRecord& run : {titan(lines, -1, none), megatron(lines, -1, none, true),
                                 nanotron(lines, -1, none), llmc(lines, -1, none)})
      EXPECT_EQ(contradictions(run), "") << run.format.name << " " << lines;
  }
}

TEST(WorkSteadySpec, OneWrongNumberIsNamed) {
  EXPECT_EQ(named(titan(4, 2, [](Line& l) { l.flops *= 0.75; })), "line_flops_rate");
  EXPECT_EQ(named(titan(4, 2, [](Line& l) { l.mfu *= 0.75; })), "line_mfu");
  EXPECT_EQ(named(titan(4, 2, [](Line& l) { l.rate *= 1.28; })), "line_tokens_per_second");
  EXPECT_EQ(named(nanotron(12, 7, [](Line& l) { l.flops *= 2; })), "line_flops_rate");
  EXPECT_EQ(named(nanotron(12, 7, [](Line& l) { l.seconds *= 2; }), "rate_time"), "line_seconds");
  EXPECT_EQ(named(llmc(10, 4, [](Line& l) { l.rate *= 2; })), "line_tokens_per_second");
  EXPECT_EQ(named(llmc(10, 4, [](Line& l) { l.mfu *= 2; })), "line_mfu");
  // Of two numbers that leave each other, a mean that the next line does not go on from.
  const Change twice = [](Line& l) { l.rate *= 2; };
  EXPECT_EQ(named(llmc(10, 4, twice, false)), "line_tokens_per_second");
}

TEST(WorkSteadySpec, StampsSayWhichOfTwoNumbersIsWrong) {
  EXPECT_EQ(named(megatron(3, 1, [](Line& l) { l.flops *= 1.8; })), "line_flops_rate");
  EXPECT_EQ(named(megatron(3, 1, [](Line& l) { l.seconds /= 2; })), "line_seconds");
  EXPECT_EQ(named(megatron(3, 1, [](Line& l) { l.seconds *= 2; })), "line_seconds");
  // Of a slow step both are unusual: its stamps say alone whether the time is right.
  const auto of_slow_step = [](const Change& change) { return named(megatron(10, 4, change, false, 1.5)); };
  EXPECT_EQ(of_slow_step([](Line&) {}), "holds");
  EXPECT_EQ(of_slow_step([](Line& l) { l.seconds *= 4; }), "line_seconds");
  EXPECT_EQ(of_slow_step([](Line& l) { l.flops *= 4; }), "line_flops_rate");
}

/// MFU and tokens/s alone, as torchtitan's first versions print them: no batch says how long a step takes by
/// its rate. The lines' own say it.
TEST(WorkSteadySpec, StampsSayItOfRatesOfAnUnknownBatch) {
  const auto of_slow_steps = [](double slow, const Change& change) {
    RunRecord record = titan(10, 5, change, false, -1, [=](int k, Line& l) {
      if (k == 5) l.seconds *= slow, l.rate /= slow, l.flops /= slow, l.mfu /= slow;
    });
    for (Step& step : record.steps) step[Field::flops_rate].reset();
    return named(record);
  };
  // Steps that are slower by the root of what the wrong number is off by, and faster by it.
  for (const double slow : {std::sqrt(1.3), 1.0, 1 / std::sqrt(1.3)}) {
    EXPECT_EQ(of_slow_steps(slow, [](Line&) {}), "holds") << slow;
    EXPECT_EQ(of_slow_steps(slow, [](Line& l) { l.rate *= 1.3; }), "line_tokens_per_second") << slow;
    EXPECT_EQ(of_slow_steps(slow, [](Line& l) { l.mfu *= 1.3; }), "line_mfu") << slow;
    EXPECT_EQ(of_slow_steps(slow, [](Line& l) { l.mfu /= 1.3; }), "line_mfu") << slow;
  }
  // Steps of twice the batch, as the lines say, take twice as long at the same rates.
  RunRecord record = titan(
      10, 5, [](Line& l) { l.rate *= 2; }, false, -1, [](int k, Line& l) { l.seconds *= k == 5 ? 2 : 1; });
  for (Step& step : record.steps) {
    step[Field::flops_rate].reset();
    step[Field::tokens] = exactly(&step == &record.steps[5] ? 16384 : 8192);
  }
  EXPECT_EQ(named(record), "line_tokens_per_second");
}

TEST(WorkSteadySpec, AnotherRunsLinesAreNoWrongOnes) {
  // The last of a few may be of another run, and so are many that agree among themselves.
  EXPECT_EQ(named(titan(4, 3, [](Line& l) { l.flops *= 0.75; })), "holds");
  EXPECT_NE(named(megatron(3, 0, [](Line& l) { l.flops *= 1.8; })), "line_flops_rate");
}

TEST(WorkSteadySpec, WhereSettingsSayItTheyStandForIt) {
  const RunRecord run = nanotron(
      12, -1, [](Line&) {}, 2);
  // What the tokens since the start grow by is the batch: twice the rate on every line is told.
  EXPECT_TRUE(audit(run).contradicts);
}

TEST(LineClockSpec, ARateThatItsStampsDenyContradicts) {
  const Change twice = [](Line& l) { l.rate *= 2, l.flops *= 2, l.mfu *= 2; };
  EXPECT_EQ(named(titan(10, -1, twice, true), "line_clock"), "holds");
  EXPECT_EQ(named(titan(10, 5, twice, true), "line_clock"), "line_tokens_per_second");
  // A pause makes a window longer; the rate of a line behind it is that of the others.
  EXPECT_EQ(named(titan(10, -1, twice, true, 5), "line_clock"), "holds");
  EXPECT_EQ(named(titan(10, 5, twice, false), "line_clock"), "cannot be judged");
  EXPECT_EQ(named(megatron(10, 4, [](Line& l) { l.seconds /= 3, l.flops *= 3; }), "line_clock"),
            "line_seconds");
  EXPECT_EQ(named(megatron(10, 4, [](Line& l) { l.seconds *= 3, l.flops /= 3; }), "line_clock"),
            "line_seconds");
  EXPECT_EQ(named(megatron(10, -1, twice), "line_clock"), "holds");
}

}  // namespace
}  // namespace assay::spec::audit::work_steady_test
