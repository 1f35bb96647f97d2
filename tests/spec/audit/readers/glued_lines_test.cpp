// labels: unit
// Lines of two writers that did not wait for each other: each step is read, or its line quoted; no number is
// made of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "spec/audit/readers/glued_lines.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::glued_lines_test {
namespace {

using tests::LogFormat;

constexpr LogFormat formats[] = {LogFormat::torchtitan,
                                 LogFormat::kempnerforge,
                                 LogFormat::megatron,
                                 LogFormat::nanogpt,
                                 LogFormat::llmc,
                                 LogFormat::llmq,
                                 LogFormat::hugging_face_console,
                                 LogFormat::assay};

RunRecord read_one(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

/// The log with the line break behind line `which` of its steps (of `first` on) left out, and `cut` bytes
/// before it.
std::string glued(const std::string& log, const RunRecord& run, std::size_t which, std::size_t cut) {
  std::istringstream in(log);
  std::string out, line;
  for (std::int64_t number = 1; std::getline(in, line); ++number)
    out += number == run.steps[which].line ? line.substr(0, line.size() - std::min(cut, line.size()))
                                           : line + "\n";
  return out;
}

/// Whether every number of `step` is that of the step of `run` with its number.
bool of_run(const Step& step, const RunRecord& run) {
  for (const Step& known : run.steps) {
    if (known[Field::step] && !(known[Field::step]->value == step[Field::step]->value)) continue;
    bool same = true;
    for (std::size_t f = 0; f < field_count; ++f)
      if (step.fields[f] && !(known.fields[f] && known.fields[f]->low == step.fields[f]->low)) same = false;
    if (same) return true;
  }
  return false;
}

TEST(GluedLinesSpec, TwoWholeStepsInALineAreTwoSteps) {
  for (const LogFormat format : formats)
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const std::string log = tests::render(tests::simulate(format, seed));
      const RunRecord bare = read_one(log), run = read_one(glued(log, bare, 3, 0));
      // Where nothing shows that the first one's last number is whole, its line is quoted.
      EXPECT_EQ(run.steps.size() + static_cast<std::size_t>(run.unread_lines), bare.steps.size())
          << tests::to_string(format);
      EXPECT_LE(run.unread_lines, format == LogFormat::kempnerforge ? 1 : 0) << tests::to_string(format);
      for (const Step& step : run.steps) EXPECT_TRUE(of_run(step, bare)) << tests::to_string(format);
    }
}

TEST(GluedLinesSpec, AStepThatIsCutIsQuotedAndNeverMisread) {
  for (const LogFormat format : formats) {
    const std::string log = tests::render(tests::simulate(format, 1));
    const RunRecord bare = read_one(log);
    for (std::size_t cut = 1; cut < 120; ++cut) {
      const RunRecord run = read_one(glued(log, bare, 3, cut));
      const std::int64_t lost = static_cast<std::int64_t>(bare.steps.size() - run.steps.size());
      EXPECT_GE(lost, 0) << tests::to_string(format) << ", " << cut;
      EXPECT_LE(lost, 1 + run.unread_lines) << tests::to_string(format) << ", " << cut;
      for (const Step& step : run.steps)
        EXPECT_TRUE(of_run(step, bare))
            << tests::to_string(format) << ", " << cut << ", step " << step[Field::step]->value;
    }
  }
}

TEST(GluedLinesSpec, WhoseLineItIsIsReadOrTheLineQuoted) {
  const std::string step = "iter @: loss 10.9876, time 134.20ms, mfu 37.10%";
  const auto line = [&](char number) {
    std::string out = step;
    out[5] = number;
    return out;
  };
  std::string log;
  for (const char number : {'1', '2', '3'})
    for (const char* const rank : {"[rank0]:", "[rank1]:"}) log += rank + line(number) + "\n";
  const RunRecord known = read_one(log + "[rank0]:" + line('4') + "[rank1]:" + line('4') + "\n");
  EXPECT_EQ(known.ranks, 2);
  EXPECT_EQ(known.steps_seen, 8);
  EXPECT_EQ(known.unread_lines, 0);
  const RunRecord lost = read_one(log + "[rank0]:" + line('4') + line('4') + "\n");
  EXPECT_EQ(lost.ranks, 2);
  EXPECT_EQ(lost.steps_seen, 7);
  EXPECT_EQ(lost.unread_lines, 1);
}

const std::string step_of_megatron =
    " [2025-11-15 12:34:56] iteration  @/  100 | consumed samples:  640 | elapsed time per iteration (ms): "
    "812.5 | learning rate: 1.0E-05 | global batch size:  64 | lm loss: 2.500000E+00 | grad norm: 1.300 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |";
const std::string step_of_kempnerforge =
    "[step 7] loss=9.7500 | lr=3.00e-04 | grad_norm=4.234 | tok/s=16,437 | mfu=21.4% | mem=60.0/80GB | "
    "step_time=0.77s";

/// Two of Megatron-LM's steps, the second with `behind` in its line.
RunRecord with_behind(const std::string& behind) {
  std::string first = step_of_megatron, second = step_of_megatron;
  first[first.find('@')] = '1', second[second.find('@')] = '2';
  return read_one(first + "\n" + second + behind + "\n");
}

TEST(GluedLinesSpec, AStepOfAnotherTrainerIsNoPartOfTheOneBefore) {
  const RunRecord run = with_behind(step_of_kempnerforge);
  EXPECT_EQ(run.format.name, "megatron");
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.unread_lines, 0);
  for (const Field field : {Field::loss, Field::learning_rate, Field::gradient_norm, Field::seconds})
    EXPECT_EQ(run.steps[1][field]->value, run.steps[0][field]->value) << to_string(field);
  ASSERT_EQ(run.foreign_lines.size(), 1u);
  EXPECT_EQ(run.foreign_lines[0].format, "kempnerforge");
  EXPECT_EQ(run.foreign_lines[0].line, 2);
}

/// Megatron-LM's own lines may go on in the next one.
TEST(GluedLinesSpec, AStepOfAnotherTrainerInTheNextLineIsNoRestOfTheOneBefore) {
  const RunRecord run = with_behind("\n" + step_of_kempnerforge);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.unread_lines, 0);
  for (const Field field : {Field::loss, Field::learning_rate, Field::gradient_norm, Field::seconds})
    EXPECT_EQ(run.steps[1][field]->value, run.steps[0][field]->value) << to_string(field);
  ASSERT_EQ(run.foreign_lines.size(), 1u);
  EXPECT_EQ(run.foreign_lines[0].line, 3);
}

TEST(GluedLinesSpec, TheFirstOfTwoTrainersInTheFirstLineIsRead) {
  std::string one = step_of_megatron;
  one[one.find('@')] = '1';
  EXPECT_EQ(read_one(one + step_of_kempnerforge + "\n").format.name, "megatron");
  const RunRecord run = read_one(step_of_kempnerforge + one + "\n");
  EXPECT_EQ(run.format.name, "kempnerforge");
  ASSERT_EQ(run.foreign_lines.size(), 1u);
  EXPECT_EQ(run.foreign_lines[0].format, "megatron");
}

TEST(GluedLinesSpec, AnOwnStepBehindAnothersIsRead) {
  std::string first = step_of_megatron, second = step_of_megatron;
  first[first.find('@')] = '1', second[second.find('@')] = '2';
  const RunRecord run = read_one(first + "\n" + step_of_kempnerforge + second + "\n");
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps[1][Field::learning_rate]->value, 1e-5);
}

/// Where a prefix of the other's begins nobody says: the own step is quoted.
TEST(GluedLinesSpec, AStepBeforeAnothersPrefixIsQuoted) {
  const RunRecord run = with_behind("[rank 0] INFO     " + step_of_kempnerforge);
  EXPECT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.unread_lines, 1);
  ASSERT_EQ(run.foreign_lines.size(), 1u);
  EXPECT_EQ(run.foreign_lines[0].count, 1);
}

/// A simulated log of more than five steps, the first from `seed` on.
std::string several_steps(LogFormat format, std::uint64_t seed) {
  for (;; ++seed)
    if (std::string log = tests::render(tests::simulate(format, seed)); read_one(log).steps.size() > 5)
      return log;
}

/// Each trainer's steps behind each other's, whole and cut: no number is of both.
TEST(GluedLinesSpec, NoStepHasNumbersOfTwoTrainers) {
  for (const LogFormat format : formats)
    for (const LogFormat other : formats) {
      if (other == format) continue;
      const std::string log = several_steps(format, 2), others = several_steps(other, 3);
      const RunRecord bare = read_one(log), foreign = read_one(others);
      std::istringstream in(others);
      std::string behind;
      for (std::int64_t line = 0; line < foreign.steps[4].line; ++line) std::getline(in, behind);
      for (std::size_t cut = 0; cut < 120; cut += 7) {
        std::istringstream own(log);
        std::string both, line;
        for (std::int64_t number = 1; std::getline(own, line); ++number)
          both += (number == bare.steps[3].line
                       ? line.substr(0, line.size() - std::min(cut, line.size())) + behind
                       : line) +
                  "\n";
        const RunRecord run = read_one(both);
        EXPECT_GE(run.steps.size() + 1, bare.steps.size());
        for (const Step& step : run.steps)
          EXPECT_TRUE(of_run(step, bare)) << tests::to_string(format) << ", " << tests::to_string(other)
                                          << ", " << cut << ", line " << step.line;
      }
    }
}

/// No step is cut for words of others that stand in it.
TEST(GluedLinesSpec, NoStepHasAnothersInIt) {
  for (const LogFormat format : formats)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const RunRecord run = read_one(tests::render(tests::simulate(format, seed)));
      EXPECT_TRUE(run.foreign_lines.empty()) << tests::to_string(format) << ", " << seed;
      EXPECT_EQ(run.unread_lines, 0) << tests::to_string(format) << ", " << seed;
    }
}

}  // namespace
}  // namespace assay::spec::audit::glued_lines_test
