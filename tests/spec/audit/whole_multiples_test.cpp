// labels: unit
// Sequences/s that are a whole multiple of what the log makes them, or one part in as many, are told so.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/hugging_face_state.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::whole_multiples_test {
namespace {

/// Of steps of 256 sequences in 2 s.
Audit of_lines(double times) {
  std::string log = "step,loss,seconds,sps\n";
  char line[100];
  for (int i = 1; i <= 20; ++i) {
    const double seconds = 2 + 0.01 * (i % 4);
    std::snprintf(line, sizeof line, "%d,%.4f,%.4f,%.3f\n", i, 4 - 0.01 * i, seconds, times * 256 / seconds);
    log += line;
  }
  return audit(tests::read_text(log, "sequences=256,gpus=4",
                                "step=step,loss=loss,seconds=seconds,sequences_per_second=sps"));
}

TEST(WholeMultiplesSpec, SequencesPerSecondOfALine) {
  EXPECT_EQ(tests::result_of(of_lines(1), "sequences_rate").verdict, Verdict::holds);
  const Audit twice = of_lines(2), quarter = of_lines(0.25);
  EXPECT_EQ(tests::result_of(twice, "sequences_rate").causes.at(0).text,
            "sequences/s is 2 times what the batch and the step time make");
  EXPECT_EQ(tests::result_of(quarter, "sequences_rate").causes.at(0).text,
            "sequences/s is 1/4 of what the batch and the step time make");
  EXPECT_EQ(tests::first_cause(of_lines(1.37)), "unknown");
}

/// 100 steps of 32 sequences in 1,000 s.
Result of_summary(double samples_per_second, double steps_per_second) {
  tests::HuggingFaceState state;
  state.passes = "1", state.samples_per_second = samples_per_second,
  state.steps_per_second = steps_per_second;
  return judge("average_sequences_rate", state.record("micro=4,accumulation=2,gpus=4"));
}

TEST(WholeMultiplesSpec, SequencesPerSecondOfASummary) {
  EXPECT_EQ(of_summary(3.2, 0.1).verdict, Verdict::holds);
  EXPECT_EQ(of_summary(6.4, 0.1).causes.at(0).text, "sequences/s is 2 times what the batch and steps/s make");
  EXPECT_EQ(of_summary(0.8, 0.1).causes.at(0).text,
            "sequences/s is 1/4 of what the batch and steps/s make: one rank's");
  // Neither a multiple, nor where steps/s are of another time as well.
  const std::string other = "sequences/s over another time, or other steps, than the summary says";
  EXPECT_EQ(of_summary(4.4, 0.1).causes.at(0).text, other);
  EXPECT_EQ(of_summary(6.4, 0.2).causes.at(0).text, other);
  EXPECT_EQ(of_summary(6.4, 0.05).causes.at(0).text, other);
}

}  // namespace
}  // namespace assay::spec::audit::whole_multiples_test
