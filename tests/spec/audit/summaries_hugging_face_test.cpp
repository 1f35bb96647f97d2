// labels: unit property
// What Hugging Face's Trainer states of a run as a whole, against the steps that it logs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <iomanip>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::summaries_hugging_face_test {
namespace {

/// trainer_state.json of 100 steps, a line every ten, their losses 1.5 to 1.05.
struct State {
  int max_steps = 100;
  double train_loss = 1.275, samples_per_second = 3.2, steps_per_second = 0.1;
  int first = 10, last = 100;
  double tokens_per_step = 0, tokens_per_second = 0, total_flos = 0;  // left out where 0
  std::string passes;                                                 // num_train_epochs
  double batches_differ = 0;  // of the tokens of a line, up to this share more or less

  RunRecord record(const std::string& set = "") const {
    std::ostringstream out;
    out << "{\"max_steps\": " << max_steps << ", \"train_batch_size\": 4, ";
    if (!passes.empty()) out << "\"num_train_epochs\": " << passes << ", ";
    out << "\"log_history\": [\n";
    double seen = tokens_per_step * (first - 10);
    for (int step = first; step <= last; step += 10) {
      out << "{\"learning_rate\": 1e-5, \"loss\": " << 1.55 - 0.005 * step;
      seen += tokens_per_step * 10 * (1 + batches_differ * std::sin(step));
      if (tokens_per_step > 0) out << ", \"num_input_tokens_seen\": " << std::llround(seen);
      out << ", \"step\": " << step << "},\n";
    }
    out << "{\"step\": " << last << ", \"train_loss\": " << train_loss
        << ", \"train_runtime\": 1000.0, \"train_samples_per_second\": " << samples_per_second
        << ", \"train_steps_per_second\": " << steps_per_second;
    if (tokens_per_second > 0) out << ", \"train_tokens_per_second\": " << tokens_per_second;
    if (total_flos > 0) out << ", \"total_flos\": " << total_flos;
    out << "}]}\n";
    std::istringstream in(out.str());
    ReadOptions options;
    options.set = set;
    return read_log(in, "trainer_state.json", options);
  }
  Result of(std::string_view id) const { return judge(id, record()); }
};

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

// 100 steps in 1,000 s: 8 H100 do at most 7.9e18 FLOP in that time, and 6 N of llama3-8b is 45 GFLOP per
// token (4 N where adapters alone are trained: 30).
TEST(SummariesHuggingFaceSpec, TokensOfTheRunAreNoMoreThanItsGpusCompute) {
  const std::string machine = "gpus=8,gpu=NVIDIA H100 80GB HBM3,model=llama3-8b";
  const auto of = [&](const State& state) { return judge("average_speed", state.record(machine)); };
  State honest, tokens, rate, flops;
  honest.tokens_per_step = 8e5, honest.tokens_per_second = 8e4, honest.total_flos = 6 * 7.5e9 * 8e7;
  EXPECT_EQ(of(honest).verdict, Verdict::holds);
  EXPECT_EQ(judge("total_flops", honest.record(machine)).verdict, Verdict::holds);
  EXPECT_GT(of(honest).printed, 0.25);
  EXPECT_LT(of(honest).printed, 0.35);
  // 163 % by 6 N.
  tokens.tokens_per_step = 2.87e6, rate.tokens_per_second = 2.87e5, flops.total_flos = 1.63 * 7.92e18;
  for (const State& state : {tokens, rate, flops}) {
    const Result speed = of(state);
    EXPECT_EQ(speed.verdict, Verdict::contradicts) << speed.note;
    ASSERT_EQ(speed.causes.size(), 1u);
    EXPECT_EQ(speed.causes[0].id, "speed_impossible");
  }
  // total_flos speaks without a model.
  EXPECT_EQ(judge("average_speed", flops.record("gpus=8,gpu=NVIDIA H100 80GB HBM3")).verdict,
            Verdict::contradicts);
  EXPECT_EQ(judge("average_speed", flops.record("gpu=NVIDIA H100 80GB HBM3")).verdict,
            Verdict::cannot_be_judged);
}

TEST(SummariesHuggingFaceSpec, TokensBeforeAResumeAreOfAnotherTime) {
  State resumed;
  resumed.tokens_per_step = 2.87e6, resumed.total_flos = 1e20;
  resumed.train_loss = 0.4 * 1.125;  // of 40 steps, over 100
  EXPECT_EQ(
      judge("average_speed", resumed.record("gpus=8,gpu=NVIDIA H100 80GB HBM3,model=llama3-8b")).verdict,
      Verdict::cannot_be_judged);
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

/// 262,144 tokens a step and 1,000 s: 26,214.4 of them a second.
TEST(SummariesHuggingFaceSpec, TokensPerSecondAreThoseSeenOrOneRanks) {
  State state;
  state.tokens_per_step = 262144;
  for (const double honest : {26214.4, 26214.4 / 8}) {
    state.tokens_per_second = honest;
    EXPECT_EQ(state.of("average_rate").verdict, Verdict::holds) << state.of("average_rate").note;
  }
  EXPECT_NE(state.of("average_rate").note.find("one rank of 8"), std::string::npos);
  EXPECT_EQ(judge("average_rate", state.record("gpus=8")).verdict, Verdict::holds);
  EXPECT_EQ(judge("average_rate", state.record("gpus=4")).verdict, Verdict::contradicts);
  for (const double lie : {26214.4 * 1.2, 26214.4 * 8, 26214.4 / 1.5, 26214.4 / 8 * 1.1}) {
    state.tokens_per_second = lie;
    EXPECT_EQ(state.of("average_rate").verdict, Verdict::contradicts) << lie;
  }
  // After a resume the tokens go on, and the time begins anew.
  state.train_loss = 0.6;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::cannot_be_judged);
}

/// Batches of unequal tokens: padding that is not counted as seen, or a first batch that stood for all
/// (max_steps), makes the rate another one, above or below, of all ranks or of one.
TEST(SummariesHuggingFaceSpec, PaddingAndAFirstBatchMakeAnotherRateOfTokens) {
  State state;
  state.tokens_per_step = 12800, state.batches_differ = 0.003;
  state.tokens_per_second = 1280;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::holds) << state.of("average_rate").note;
  for (const double honest : {1280 * 1.25, 1280 * 1.12, 1280 * 0.88, 1280 * 1.25 / 8}) {
    state.tokens_per_second = honest;
    const Result rate = state.of("average_rate");
    EXPECT_EQ(rate.verdict, Verdict::cannot_be_judged) << honest << ": " << rate.note;
    EXPECT_NE(rate.note.find("padding"), std::string::npos) << rate.note;
    EXPECT_NE(rate.note.find("first batch"), std::string::npos) << rate.note;
  }
  // All tokens that follow are alike: no mask and no batch makes another rate.
  state.batches_differ = 0, state.tokens_per_second = 1280 * 1.12;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::contradicts);
  // But not where a line has one token more, or where two lines are too few to show it.
  state.batches_differ = 1.0 / 128000;
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::cannot_be_judged);
  state.batches_differ = 0, state.last = 20, state.max_steps = 20, state.train_loss = 1.475;
  state.steps_per_second = 0.02, state.samples_per_second = 0.64, state.tokens_per_second = 256 * 1.12;
  EXPECT_EQ(state.of("average_loss").verdict, Verdict::holds);
  EXPECT_EQ(state.of("average_rate").verdict, Verdict::cannot_be_judged);
}

TEST(SummariesHuggingFaceSpec, TheRateOfTheRunIsThatOfTheTokensSeen) {
  State state;
  const auto rate = [&] {
    const RunRecord record = state.record();
    return audit(record).readings.front().corrected.tokens_per_second;
  };
  EXPECT_FALSE(rate());
  state.tokens_per_step = 262144;
  ASSERT_TRUE(rate());
  EXPECT_NEAR(rate()->middle(), 26214.4, 0.01);
  state.last = 90;  // steps that no line counts
  EXPECT_FALSE(rate());
  state.last = 100, state.steps_per_second = 0.2;  // a time that the summary denies
  EXPECT_FALSE(rate());
  state.steps_per_second = 0.1, state.tokens_per_second = 99999;
  EXPECT_FALSE(rate());
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
