// labels: unit
// The steps/s and sequences/s that Hugging Face's Trainer states of a run, against each other, its time and
// its batch.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/hugging_face_state.hpp"

namespace assay::spec::audit::summaries_hugging_face_rates_test {
namespace {

using State = tests::HuggingFaceState;

/// What is said of the steps/s of a state of 100 steps in 1,000 s.
std::string said_of_steps_rate(State state, double samples, double steps, const std::string& set = "") {
  state.samples_per_second = samples, state.steps_per_second = steps;
  const Result told = judge("average_steps_rate", state.record(set));
  return told.verdict == Verdict::contradicts ? told.causes.front().text : std::string("holds");
}

TEST(SummariesHuggingFaceSpec, BySequencesOfARunOfStepsItIsToldWhetherStepsOrTimeAreWrong) {
  State by_steps;
  by_steps.passes = "9223372036854775807";
  const auto cause = [&](double samples, double steps) {
    return said_of_steps_rate(by_steps, samples, steps);
  };
  EXPECT_EQ(cause(3.2, 0.1), "holds");
  EXPECT_EQ(
      cause(3.2, 0.15),
      "steps/s is wrong, not the time: sequences/s make 32 sequences of a step by the time, and 21.33 by "
      "steps/s, no whole number of passes of 4");
  // As if in 700 s.
  EXPECT_EQ(cause(4.571, 0.143).rfind("the time is wrong, not steps/s: sequences/s make 32 sequences", 0), 0u)
      << cause(4.571, 0.143);
  // Whole passes by either, or by few digits perhaps: nothing tells.
  EXPECT_EQ(cause(3.2, 0.2).rfind("steps/s over another time", 0), 0u) << cause(3.2, 0.2);
  EXPECT_EQ(cause(32, 0.012).rfind("steps/s over another time", 0), 0u) << cause(32, 0.012);
}

/// 1,000 samples in batches of 32, three times: 96 steps, of 31.25 samples on average.
TEST(SummariesHuggingFaceSpec, OfARunOfPassesAShortLastBatchMakesNoAccusation) {
  State passes;
  passes.passes = "3", passes.max_steps = 96, passes.last = 90;
  EXPECT_EQ(said_of_steps_rate(passes, 3, 0.096), "holds");
  // Falsified steps/s make 30, a whole number, and the time 31.25: that proves nothing.
  EXPECT_EQ(said_of_steps_rate(passes, 3, 0.1).rfind("steps/s over another time", 0), 0u)
      << said_of_steps_rate(passes, 3, 0.1);
  // A stated batch, of which 32 steps of a pass leave one at most, does: 31.25 is a mean of them, 28 is none.
  const std::string stated = "gpus=8,accumulation=1";
  EXPECT_EQ(judge("average_sequences_rate", passes.record(stated)).verdict, Verdict::contradicts);  // 3.2
  EXPECT_EQ(
      said_of_steps_rate(passes, 3, 0.107, stated),
      "steps/s is wrong, not the time: sequences/s make 31.25 sequences of a step by the time, and 28.04 "
      "by steps/s, which batches of 32 do not make");
  EXPECT_EQ(said_of_steps_rate(passes, 2.679, 0.0857, stated)
                .rfind("the time is wrong, not steps/s: sequences/s make 31.26 sequences of a step", 0),
            0u)
      << said_of_steps_rate(passes, 2.679, 0.0857, stated);
  EXPECT_EQ(said_of_steps_rate(passes, 3, 0.098, stated).rfind("steps/s over another time", 0), 0u);
}

TEST(SummariesHuggingFaceSpec, SequencesOfARunOfPassesAreHeldToBatchesWithAShortLastOne) {
  State state;
  state.passes = "4", state.max_steps = 100;
  const auto verdict = [&](double samples_per_step) {
    state.samples_per_second = samples_per_step / 10;
    return judge("average_sequences_rate", state.record("gpus=8,accumulation=1")).verdict;
  };
  // 25 steps of a pass: 24 whole ones and a sequence, or passes of the accumulation that make no step.
  for (const double honest : {32.0, 31.0, 30.76, 33.24}) EXPECT_EQ(verdict(honest), Verdict::holds) << honest;
  for (const double wrong : {4.0, 16.0, 26.0, 35.0, 64.0})
    EXPECT_EQ(verdict(wrong), Verdict::contradicts) << wrong;
  // A run by steps counts whole batches.
  state.passes = "9223372036854775807";
  EXPECT_EQ(verdict(32), Verdict::holds);
  EXPECT_EQ(verdict(31), Verdict::contradicts);
}

TEST(SummariesHuggingFaceSpec, SequencesOfAStepAreToldWhereNothingStatesThem) {
  State state;
  state.steps_per_second = 0.15;
  EXPECT_EQ(state.of("average_sequences_rate").note.rfind("with the steps/s: 21.33 sequences per step", 0),
            0u);
}

TEST(SummariesHuggingFaceSpec, LessThanASequencePerStepContradicts) {
  State state;
  state.samples_per_second = 0.0032;
  EXPECT_EQ(state.of("average_sequences_rate").verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::summaries_hugging_face_rates_test
