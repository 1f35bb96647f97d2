// labels: unit
// Lines of two writers that did not wait for each other: each step is read, or its line quoted; no number is
// made of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "spec/audit/readers/glued_lines.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated_run.hpp"

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

}  // namespace
}  // namespace assay::spec::audit::glued_lines_test
