// labels: unit property
// What Hugging Face's Trainer states of a run as a whole, against the steps that it logs: planned steps and
// passes, and the mean loss. Its rates: summaries_hugging_face_rates_test.cpp, and ..._tokens_test.cpp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <iomanip>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/hugging_face_state.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::summaries_hugging_face_test {
namespace {

using State = tests::HuggingFaceState;

/// The console of 1,000 steps of one pass over the data, a line every ten from `first` on (without those
/// between `lost` and `found`), losses falling from 6 to 1; their mean is 3.5.
RunRecord console(int first, bool numbered, int lost = 2000, int found = 0) {
  std::ostringstream out;
  for (int step = first; step <= 1000; step += 10) {
    if (step > lost && step < found) continue;
    out << "{'loss': " << 6 - 0.005 * (step - 5)
        << ", 'learning_rate': 1e-05, 'epoch': " << std::round(step / 10.0) / 100
        << (numbered ? ", 'step': " + std::to_string(step) : "") << "}\n";
  }
  out << "{'train_runtime': 100.0, 'train_samples_per_second': 80.0, 'train_steps_per_second': 10.0, "
         "'train_loss': 3.5, 'epoch': 1.0}\n";
  std::istringstream in(out.str());
  return read_log(in, "console.log");
}

/// A console of such epochs and losses, and their mean.
RunRecord read_log_of(std::initializer_list<std::pair<const char*, double>> lines, double mean) {
  std::ostringstream out;
  for (const auto& [epoch, loss] : lines)
    out << "{'loss': " << loss << ", 'learning_rate': 1e-05, 'epoch': " << epoch << "}\n";
  out << "{'train_runtime': 100.0, 'train_samples_per_second': 80.0, 'train_steps_per_second': 10.0, "
         "'train_loss': "
      << mean << ", 'epoch': 1.0}\n";
  std::istringstream in(out.str());
  return read_log(in, "console.log");
}

TEST(SummariesHuggingFaceSpec, AMeanLossIsNotHeldToTheTailOfALog) {
  for (const bool numbered : {true, false}) {
    EXPECT_EQ(judge("average_loss", console(10, numbered)).verdict, Verdict::holds) << numbered;
    const Result tail = judge("average_loss", console(960, numbered));
    EXPECT_EQ(tail.verdict, Verdict::cannot_be_judged) << numbered;
    EXPECT_EQ(tail.note, "losses from the first step on");
  }
  // Of one lost line, which holds more than any that is left: its number says so, and its epoch may.
  EXPECT_EQ(judge("average_loss", console(20, true)).verdict, Verdict::cannot_be_judged);
  const Result few =
      judge("average_loss",
            read_log_of({{"0.33", 5.0}, {"0.5", 4.9}, {"0.67", 4.8}, {"0.83", 4.7}, {"1.0", 4.6}}, 5.7));
  EXPECT_EQ(few.verdict, Verdict::holds);
  // Head and tail: what is between them is not there either.
  EXPECT_EQ(judge("average_loss", console(10, false, 15, 960)).verdict, Verdict::cannot_be_judged);
  EXPECT_EQ(console(960, true).steps.front()[Field::step]->value, 960);
}

TEST(SummariesHuggingFaceSpec, AMeanLossIsNotHeldToALogWithUnreadLines) {
  RunRecord run = console(10, true);
  ASSERT_EQ(judge("average_loss", run).verdict, Verdict::holds);
  run.unread_lines = 1;
  EXPECT_EQ(judge("average_loss", run).note, "the losses on lines that could not be read");
}

TEST(SummariesHuggingFaceSpec, ATruthfulStateHolds) {
  const State state;
  for (const char* const id :
       {"planned_steps", "average_loss", "average_steps_rate", "average_sequences_rate"})
    EXPECT_EQ(state.of(id).verdict, Verdict::holds) << id << ": " << state.of(id).note;
  EXPECT_EQ(state.of("planned_steps").note, "");
  EXPECT_EQ(state.of("average_sequences_rate").note,
            "with the steps/s: 32 sequences per step, of 4 in one rank's pass");
}

TEST(SummariesHuggingFaceSpec, StepsBeyondThePlannedOnesContradict) {
  State state;
  state.max_steps = 50;
  const Result beyond = state.of("planned_steps");
  EXPECT_EQ(beyond.verdict, Verdict::contradicts);
  EXPECT_EQ(beyond.contradicted, 5);
  ASSERT_EQ(beyond.causes.size(), 1u);
  EXPECT_EQ(beyond.causes[0].id, "step_beyond");
  EXPECT_EQ(beyond.printed, 60);
}

TEST(SummariesHuggingFaceSpec, ARunThatStoppedEarlyIsToldSo) {
  State state;
  state.max_steps = 300;
  state.steps_per_second = 0.3;
  const Result early = state.of("planned_steps");
  EXPECT_EQ(early.verdict, Verdict::holds);
  EXPECT_EQ(early.note, "stopped early, or logged no further: step 100 of 300");
}

TEST(SummariesHuggingFaceSpec, AMeanLossAboveEveryLoggedOneContradicts) {
  State state;
  // Eight times the mean: the sum of eight, or the logged ones divided by eight.
  state.train_loss = 1.275 * 8;
  const Result multiple = state.of("average_loss");
  EXPECT_EQ(multiple.verdict, Verdict::contradicts);
  ASSERT_EQ(multiple.causes.size(), 2u);
  EXPECT_EQ(multiple.causes[0].id, "average_loss_multiple");
  EXPECT_NE(multiple.causes[0].text.find("about 8 times the mean"), std::string::npos);
  for (const double wrong : {5.6, 1.4}) {
    state.train_loss = wrong;
    const Result mean = state.of("average_loss");
    EXPECT_EQ(mean.verdict, Verdict::contradicts) << wrong;
    ASSERT_EQ(mean.causes.size(), 1u);
    EXPECT_EQ(mean.causes[0].id, "average_loss_too_large");
  }
  // After a resume at step 60 the sum of 40 steps is divided by 100.
  state.train_loss = 0.4 * 1.125;
  const Result resumed = state.of("average_loss");
  EXPECT_EQ(resumed.verdict, Verdict::holds);
  EXPECT_NE(resumed.note.find("after a resume"), std::string::npos) << resumed.note;
}

TEST(SummariesHuggingFaceSpec, WithoutTheFirstLossesTheMeanIsNotJudged) {
  State state;
  state.first = 60;
  state.train_loss = 9.9;
  EXPECT_EQ(state.of("average_loss").verdict, Verdict::cannot_be_judged);
}

RC_GTEST_PROP(SummariesHuggingFaceSpecProperty, TheMeanOfTheStepsIsNoContradictionWhateverTheInterval, ()) {
  const int steps = *rc::gen::inRange(40, 400), every = *rc::gen::inRange(1, steps / 4);
  const bool windows = *rc::gen::arbitrary<bool>(), first_too = *rc::gen::arbitrary<bool>();
  const double fall = *rc::gen::inRange(1, 100) * 1e-4;
  std::ostringstream out;
  out << std::fixed << std::setprecision(4);
  double sum = 0, window = 0;
  int in_window = 0;
  for (int step = 1; step <= steps; ++step) {
    const double loss = 1 + 9 * std::exp(-fall * step);
    sum += loss, window += loss, ++in_window;
    if (step % every != 0 && !(first_too && step == 1)) continue;
    out << "{\"step\": " << step << ", \"loss\": " << (windows ? window / in_window : loss) << "},\n";
    window = in_window = 0;
  }
  std::istringstream in("{\"log_history\": [\n" + out.str() + "{\"step\": " + std::to_string(steps) +
                        ", \"train_loss\": " + std::to_string(sum / steps) + "}]}\n");
  const Result mean = judge("average_loss", read_log(in, "trainer_state.json"));
  RC_ASSERT(mean.verdict != Verdict::contradicts);
  RC_ASSERT(mean.note.find("resume") == std::string::npos);
}

/// Three lines of a state that plans `planned` passes; the last one is at `epoch`.
Result epochs(const std::string& planned, const std::string& epoch) {
  return judge("epochs", tests::read_text(
                             R"({"log_history": [{"epoch": 0.5, "loss": 2.5, "step": 10},
{"epoch": 1.0, "loss": 2.4, "step": 20}, {"epoch": )" +
                             epoch + R"(, "loss": 2.3, "step": 30}], "max_steps": 30, "num_train_epochs": )" +
                             planned + "}"));
}

TEST(SummariesHuggingFaceSpec, NoMorePassesAreDoneThanArePlanned) {
  EXPECT_EQ(epochs("2", "1.5").verdict, Verdict::holds);
  EXPECT_EQ(epochs("2", "2.0").verdict, Verdict::holds);
  // Rounded to two digits it is 2.0 at the most.
  EXPECT_EQ(epochs("2", "2.004").verdict, Verdict::contradicts);
  EXPECT_EQ(epochs("3", "3.01").verdict, Verdict::contradicts);
  // 2.5 passes are planned as 3.
  EXPECT_EQ(epochs("3", "2.5").verdict, Verdict::holds);
  EXPECT_EQ(epochs("2", "2.25").verdict, Verdict::contradicts);
  EXPECT_EQ(epochs("2", "2.25").causes.at(0).id, "epochs_beyond");
  EXPECT_EQ(epochs("9223372036854775807", "7.5").verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::summaries_hugging_face_test
