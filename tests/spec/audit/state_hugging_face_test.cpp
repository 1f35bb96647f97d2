// labels: unit
// How far Hugging Face's state says that its run is.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::state_hugging_face_test {
namespace {

/// Ten lines of 100 steps in two epochs, as trainer_state.json has them.
struct State {
  std::string epoch = "2.0", global_step = "100", max_steps = "100", summary = "100", runtime = "1000.0";
  int odd = 0;
  std::string odd_epoch;

  Result of(std::string_view id) const {
    std::string out =
        "{\"epoch\": " + epoch + ", \"global_step\": " + global_step + ",\n\"log_history\": [\n";
    for (int n = 1; n <= 10; ++n)
      out += "{\"epoch\": " + (n == odd ? odd_epoch : std::to_string(0.2 * n)) +
             ", \"learning_rate\": 1e-5, \"loss\": " + std::to_string(2 - 0.01 * n) +
             ", \"step\": " + std::to_string(10 * n) + "},\n";
    out += "{\"epoch\": 2.0, \"step\": " + summary +
           ", \"train_loss\": 1.945, \"train_runtime\": " + runtime + "}],\n\"max_steps\": " + max_steps +
           ", \"num_train_epochs\": 2, \"train_batch_size\": 8}\n";
    return judge(id, tests::read_text(out));
  }
};

TEST(StateHuggingFaceSpec, TheStateIsAsFarAsItsLinesAndNoFurtherThanItsPlan) {
  EXPECT_EQ(State().of("planned_steps").verdict, Verdict::holds);
  EXPECT_EQ(State().of("epochs").verdict, Verdict::holds);
  State early;  // saved behind its last line, before the end
  early.global_step = "105", early.epoch = "2.1", early.max_steps = "200", early.summary = "105";
  EXPECT_EQ(early.of("planned_steps").verdict, Verdict::holds);
  EXPECT_EQ(early.of("epochs").causes.at(0).id, "epochs_beyond");
}

TEST(StateHuggingFaceSpec, TheStateSaysHowFarTheRunIsWhereItsLastLineIsOfAnEarlierStep) {
  const auto told = [](const char* step, const char* summary, const char* max_steps) {
    State state;
    state.global_step = step, state.summary = summary, state.max_steps = max_steps;
    return state.of("planned_steps");
  };
  const Result whole = told("105", "105", "105");
  EXPECT_EQ(whole.verdict, Verdict::holds);
  EXPECT_EQ(whole.note, "the last line is of step 100, the state of the last step");
  EXPECT_EQ(whole.recomputed.low, 105);
  EXPECT_EQ(told("100", "105", "105").note, whole.note);
  EXPECT_EQ(told("105", "100", "105").note, whole.note);
  EXPECT_EQ(told("105", "105", "200").note, "stopped early, or saved before the end: step 105 of 200");
  EXPECT_EQ(told("100", "100", "200").note, "stopped early, or logged no further: step 100 of 200");
  EXPECT_EQ(told("100", "100", "100").note, "");
}

TEST(StateHuggingFaceSpec, AStepOfTheStateBeyondThePlanOrBeforeTheLastLineContradicts) {
  for (const char* step : {"800", "90", "101"}) {
    State state, summary;
    state.global_step = step, summary.summary = step;
    EXPECT_EQ(state.of("planned_steps").verdict, Verdict::contradicts) << step;
    EXPECT_EQ(summary.of("planned_steps").verdict, Verdict::contradicts) << step;
  }
}

TEST(StateHuggingFaceSpec, AnEpochOfTheStateBeyondThePlanOrBeforeTheLastLineContradicts) {
  for (const char* epoch : {"7.0", "1.5"}) {
    State state;
    state.epoch = epoch;
    EXPECT_EQ(state.of("epochs").verdict, Verdict::contradicts) << epoch;
  }
  State rounded;  // the line's, to two digits
  rounded.epoch = "1.9951";
  EXPECT_EQ(rounded.of("epochs").verdict, Verdict::holds);
}

TEST(StateHuggingFaceSpec, OneLinesEpochFarFromThoseAroundItContradicts) {
  for (const char* epoch : {"1.9", "0.3"}) {
    State state;
    state.odd = 5, state.odd_epoch = epoch;
    EXPECT_EQ(state.of("values_possible").verdict, Verdict::contradicts) << epoch;
  }
  EXPECT_EQ(State().of("values_possible").verdict, Verdict::holds);
}

TEST(StateHuggingFaceSpec, ATimeOfTheRunBelowZeroContradicts) {
  State state;
  state.runtime = "-5.0";
  EXPECT_EQ(state.of("values_possible").verdict, Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::state_hugging_face_test
