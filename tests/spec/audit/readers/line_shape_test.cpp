// labels: unit property
// Lines that are read at one go, because a line before them was alike, give what each gives on its own.
#include "spec/audit/readers/line_shape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated_run.hpp"

namespace assay::spec::audit::line_shape_test {
namespace {

using tests::LogFormat;

std::vector<RunRecord> read(const std::string& log, const tests::ReadArguments& told, bool keep_odd = false,
                            const StepCheck& check = {}) {
  ReadOptions options;
  options.map = told.map;
  options.set = told.set;
  options.keep_odd_steps = keep_odd;
  options.step_check = check;
  std::istringstream in(log);
  return read_logs(in, "drawn", options);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same(const std::optional<Printed>& a, const std::optional<Printed>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return same(a->value, b->value) && same(a->low, b->low) && same(a->high, b->high) && a->line == b->line;
}

/// What differs; empty when nothing does.
std::string difference(const std::vector<RunRecord>& a, const std::vector<RunRecord>& b) {
  if (a.size() != b.size()) return "number of runs";
  for (std::size_t run = 0; run < a.size(); ++run) {
    if (a[run].steps_seen != b[run].steps_seen) return "steps seen";
    if (a[run].unread_lines != b[run].unread_lines) return "unread lines";
    if (a[run].steps.size() != b[run].steps.size()) return "steps kept";
    for (std::size_t i = 0; i < setting_count; ++i)
      if (!same(a[run].settings[i], b[run].settings[i]))
        return std::string(to_string(static_cast<Setting>(i)));
    for (std::size_t s = 0; s < a[run].steps.size(); ++s) {
      const std::string at = " of line " + std::to_string(a[run].steps[s].line);
      if (a[run].steps[s].line != b[run].steps[s].line) return "line" + at;
      for (std::size_t i = 0; i < field_count; ++i)
        if (!same(a[run].steps[s].fields[i], b[run].steps[s].fields[i]))
          return std::string(to_string(static_cast<Field>(i))) + at;
    }
  }
  return "";
}

std::vector<std::string> lines_of(const std::string& log) {
  std::vector<std::string> out;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

/// The log with something in each line that no line before it had, where its reader does not look.
std::string with_lines_unlike(LogFormat format, const std::string& log) {
  const bool json = format == LogFormat::assay || format == LogFormat::llm_tii_json ||
                    format == LogFormat::llmq_json || format == LogFormat::hugging_face ||
                    format == LogFormat::json_lines;
  std::vector<std::string> lines = lines_of(log);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string word;
    for (std::size_t left = i + 1; left > 0; left /= 20) word += static_cast<char>('a' + left % 20);
    if (json) {
      for (std::size_t at = 0; (at = lines[i].find('{', at)) != std::string::npos; ++at)
        lines[i].insert(at + 1, std::string(i, ' '));
    } else if (format == LogFormat::csv) {
      if (i > 0) lines[i] += std::string(i, ' ');
    } else if (lines[i].find_first_of("0123456789") != std::string::npos && i > 0) {
      lines[i] = word + "! " + lines[i];
    }
  }
  return joined(lines);
}

/// A run whose every step is logged, one line (or element) each.
tests::SimulatedRun drawn(LogFormat format, std::uint64_t seed, std::int64_t steps) {
  tests::SimulatedRun run = tests::simulate(format, seed, steps);
  run.log_every = 1;
  return run;
}

/// Some lines are harmed: a sign, a comma or a point, a word for a number, a digit more, a byte lost, a blank
/// doubled, a line twice.
std::string harmed(const std::string& log, int harms) {
  std::vector<std::string> lines = lines_of(log);
  for (int i = 0; i < harms; ++i) {
    const auto which = *rc::gen::inRange<std::size_t>(lines.size() / 2, lines.size() - 2);
    std::string& line = lines[which];
    const std::size_t at = line.find_first_of("0123456789", *rc::gen::inRange<std::size_t>(0, line.size()));
    const std::size_t blank = line.find(' ', *rc::gen::inRange<std::size_t>(0, line.size()));
    switch (*rc::gen::inRange(0, 10)) {
      case 9:
        if (blank != std::string::npos) line.insert(blank, 1, ' ');
        break;
      case 6:
        if (at != std::string::npos) line.insert(at + 1, ",");
        break;
      case 7:
        if (at != std::string::npos) line.insert(at + 1, ".");
        break;
      case 8:
        if (at != std::string::npos) line.insert(at, "+");
        break;
      case 0:
        if (at != std::string::npos) line.insert(at, "-");
        break;
      case 1:
        if (at != std::string::npos) line.replace(at, 1, "nan");
        break;
      case 2:
        if (at != std::string::npos) line.insert(at, "9");
        break;
      case 3:
        if (!line.empty()) line.erase(*rc::gen::inRange<std::size_t>(0, line.size()), 1);
        break;
      case 4:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(which), std::string(line));
        break;
      default:
        std::swap(lines[which], lines[which + 1]);
    }
  }
  return joined(lines);
}

RC_GTEST_PROP(LineShapeSpec, LinesAlikeReadAsLinesUnlike, ()) {
  const auto format = static_cast<LogFormat>(*rc::gen::inRange<std::size_t>(0, tests::log_formats));
  const auto run = drawn(format, *rc::gen::arbitrary<std::uint64_t>(), 40);
  const tests::ReadArguments told = tests::read_arguments(run);
  const std::string log = tests::render(run);
  auto alike = read(log, told), unlike = read(with_lines_unlike(format, log), told);
  // Lines of a header, and a launcher's rank, are read otherwise behind a word: the steps are what counts.
  RC_ASSERT(alike.size() == unlike.size());
  for (auto* runs : {&alike, &unlike})
    for (RunRecord& run_read : *runs) {
      run_read.settings = {};
      run_read.unread_lines = 0;
      for (Step& step : run_read.steps) step[Field::rank].reset();
      // What llmq's header says to be in use stands at the first step.
      if (format == LogFormat::llmq && !run_read.steps.empty())
        run_read.steps.front()[Field::memory_reserved].reset();
    }
  const std::string differs = difference(alike, unlike);
  if (!differs.empty()) RC_FAIL(std::string(tests::to_string(format)) + ": " + differs);
}

/// What ReadOptions::keep_odd_steps says, on whole steps.
StepCheck odd_steps() {
  return [last = -1e300](const RunRecord&, const Step& step) mutable {
    const auto &number = step[Field::step], &loss = step[Field::loss], &mfu = step[Field::mfu];
    const bool back = number && number->value <= last;
    if (number) last = number->value;
    const auto impossible = [&](Field field) {
      const auto& value = step[field];
      return value && (value->value < 0 || std::isinf(value->value));
    };
    return back || impossible(Field::seconds) || impossible(Field::tokens_per_second) ||
           impossible(Field::flops_rate) || (loss && (!std::isfinite(loss->value) || loss->value < 0)) ||
           (mfu && mfu->low > 1);
  };
}

RC_GTEST_PROP(LineShapeSpec, StepsKeptAsTextAreTheStepsKept, ()) {
  constexpr LogFormat lines[] = {LogFormat::nanogpt,      LogFormat::llmc,       LogFormat::llmq,
                                 LogFormat::kempnerforge, LogFormat::torchtitan, LogFormat::csv,
                                 LogFormat::json_lines};
  const LogFormat format = lines[*rc::gen::inRange<std::size_t>(0, std::size(lines))];
  const auto run = drawn(format, *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(3000, 6500));
  const tests::ReadArguments told = tests::read_arguments(run);
  const std::string log = harmed(tests::render(run), *rc::gen::inRange(0, 30));
  const std::string differs = difference(read(log, told, true), read(log, told, false, odd_steps()));
  if (!differs.empty()) RC_FAIL(std::string(tests::to_string(format)) + ": " + differs);
}

struct Learned {
  LineShapes shapes;
  explicit Learned(const std::string& line, Notation notation = Notation::text) : shapes(notation) {
    TakenNumbers taken;
    for (const auto& [name, field] : {std::pair("step", Field::step), std::pair("loss", Field::loss)})
      taken.add(line.data() + line.find_first_of("0123456789", line.find(name)), field, Kind::measured, 1);
    shapes.learn(line, taken);
  }
  std::optional<double> loss(const std::string& line) {
    Step step;
    if (shapes.read(line, 1, step) == 0) {
      EXPECT_FALSE(step[Field::step] || step[Field::loss]) << line;
      return std::nullopt;
    }
    return step[Field::loss]->value;
  }
};

TEST(LineShapeSpec, NumbersAndTheBlanksBeforeThemMayDiffer) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  EXPECT_EQ(known.loss("[02:11] step 7 bf16 loss 2.50 (+0.1z)"), 2.5);
  EXPECT_EQ(known.loss("[23:59] step   1008 bf16 loss -1.25e+01 (-12z)"), -12.5);
  EXPECT_EQ(known.loss("[23:59] step 1008 bf16 loss 12,345,678.5 (-12z)"), 12345678.5);
}

TEST(LineShapeSpec, TextThatDiffersIsAnotherLine) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  for (const char* line : {"[02:11] step 7 bf32 loss 2.50 (+0.1z)", "[02:11] step 7 bf16 loss nan (+0.1z)",
                           "[02:11] step 7 bf16 loss 2.50 (+0.1y)", "[02:11] step 7 bf16 loss 2.50 (+0.1z) ",
                           "[02:11] step 7 bf16 loss 2.50 (+z)", "[02:11] step7 bf16 loss 2.50 (+0.1z)",
                           "[02:11] step 7 bf16 loss", "[02", ""})
    EXPECT_FALSE(known.loss(line).has_value()) << line;
}

/// nanoGPT's reader knows its lines by "iter ", digits and a colon: no other line may pass for one because a
/// line before it was alike, nor fail to because others have been learned since.
TEST(LineShapeSpec, AStepsNumberOfDigitsStaysOne) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  for (const char* odd :
       {"[02:12] step -8 bf16 loss 2.51 (+0.2z)", "[02:12] step +8 bf16 loss 2.51 (+0.2z)",
        "[02:12] step 1,008 bf16 loss 2.51 (+0.2z)", "[02:12] step 8.5 bf16 loss 2.51 (+0.2z)",
        "[02:12] step 8e3 bf16 loss 2.51 (+0.2z)"}) {
    EXPECT_FALSE(known.loss(odd).has_value()) << odd;
    EXPECT_FALSE(known.shapes.glance({odd, 1, -1, true, false}).has_value()) << odd;
  }
  std::vector<std::string> lines;
  lines.reserve(5000);
  for (int step = 0; step < 5000; ++step)
    lines.push_back("iter " + std::to_string(step) + ": loss 3.0668, time 28.71ms, mfu 40.80%");
  // Each of four is a line of its own, so that the usual one is learned no more.
  for (const int odd : {4000, 4001, 4002, 4003}) lines[odd].insert(5 + odd - 3999, "nan");
  lines[4500] = "iter -4500: loss 3.0668, time 28.71ms, mfu 40.80%";
  lines[4600] = "iter 4,600: loss 3.0668, time 28.71ms, mfu 40.80%";
  const auto every_step = [](const RunRecord&, const Step&) { return true; };
  const auto quick = read(joined(lines), {}, true), whole = read(joined(lines), {}, false, every_step);
  ASSERT_EQ(quick.size(), 1u);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(quick[0].steps_seen, whole[0].steps_seen);
}

/// A number that is right-aligned is the same number, whether a line before it was alike or not.
TEST(LineShapeSpec, BlanksBeforeAStepsNumberAreReadAlikeInTheFirstLineAndLater) {
  const std::string aligned = "iter   7: loss 3.0668, time 28.71ms, mfu 40.80%",
                    plain = "iter 6: loss 3.0701, time 28.70ms, mfu 40.81%";
  const auto alone = read(joined({aligned}), {}), learned = read(joined({plain, aligned}), {});
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(learned.size(), 1u);
  ASSERT_EQ(alone[0].steps.size(), 1u);
  ASSERT_EQ(learned[0].steps.size(), 2u);
  for (const Step& step : {alone[0].steps[0], learned[0].steps[1]}) {
    EXPECT_EQ(step[Field::step]->value, 7);
    EXPECT_EQ(step[Field::loss]->value, 3.0668);
  }
}

TEST(LineShapeSpec, DigitsOfAKeyAreItsName) {
  Learned known(R"({"step":1,"loss":2.5,"layer 3":"at 10:05"})", Notation::json);
  EXPECT_EQ(known.loss(R"({"step":22,"loss":3.25,"layer 3":"at 23:59"})"), 3.25);
  EXPECT_FALSE(known.loss(R"({"step":22,"loss":3.25,"layer 4":"at 23:59"})").has_value());
  EXPECT_FALSE(known.loss(R"({"step":22,"loss":+3.25,"layer 3":"at 23:59"})").has_value());
}

TEST(LineShapeSpec, AGlanceSeesWhatIsOdd) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  const auto glance = [&](const std::string& text) {
    return known.shapes.glance({text, 1, -1, true, false});
  };
  EXPECT_EQ(glance("[02:12] step 8 bf16 loss 2.51 (+0.2z)")->number, 8);
  EXPECT_EQ(glance("[02:12] step 9 bf16 loss 2.52 (+0.3z)")->number, 9);
  for (const char* odd : {"[02:12] step 9 bf16 loss -2.5 (+0.3z)", "[02:12] step 9 bf16 loss 1e999 (+0.3z)",
                          "[02:12] step 9 bf32 loss 2.52 (+0.3z)", "[02:12] step 9 bf16 loss inf (+0.3z)"})
    EXPECT_FALSE(glance(odd).has_value()) << odd;
}

/// Lines of one layout differ in the digits of their numbers alone; what is watched is read, and a step's
/// number whatever its width.
TEST(LineShapeSpec, AGlanceAtALayoutReadsWhatItMust) {
  const std::string first = "step 7 lr 1.500e-05 mfu 0.4100 of 3 GB";
  const auto learned = [&](double unit) {
    TakenNumbers taken;
    taken.add(first.data() + 5, Field::step, Kind::counted, 1);
    taken.add(first.data() + 10, Field::learning_rate, Kind::measured, 1);
    taken.add(first.data() + 24, Field::mfu, Kind::measured, unit);
    LineShapes shapes;
    shapes.learn(first, taken);
    return shapes;
  };
  LineShapes share = learned(1), percent = learned(0.01);
  const auto glance = [](LineShapes& shapes, const std::string& text) {
    return shapes.glance({text, 1, -1, true, false});
  };
  for (int round = 0; round < 3; ++round) {  // the second and third time by the layout of the first
    EXPECT_LT(glance(share, "step 8 lr 9.999e-06 mfu 0.4321 of 4 GB")->mfu_low, 0.4321);
    EXPECT_NEAR(glance(share, "step 8 lr 9.999e-06 mfu 1.2345 of 4 GB")->mfu_low, 1.2345, 1e-3);
    EXPECT_LT(glance(percent, "step 8 lr 9.999e-06 mfu 99.999 of 4 GB")->mfu_low, 1);
    EXPECT_NEAR(glance(percent, "step 8 lr 9.999e-06 mfu 123.45 of 4 GB")->mfu_low, 1.2345, 1e-3);
    for (const char* step : {"9", "10", "1234567", "12345678", "123456789", "98765432101"})
      EXPECT_EQ(glance(share, "step " + std::string(step) + " lr 9.999e-06 mfu 0.4 of 4 GB")->number,
                std::strtod(step, nullptr));
    EXPECT_FALSE(glance(share, "step 8 lr 9.999e-06 mfu 0.4;21 of 4 GB").has_value()) << "; is 0x3b";
    EXPECT_FALSE(glance(share, "step 8 lr 9.999e-06 mfu 0.4321 of 4 GiB").has_value());
  }
}

/// Of a text that ends with its bytes: nothing behind it may be read, neither a digit nor a line break.
TEST(LineShapeSpec, ANumberThatBlanksStandForEndsWithTheText) {
  const std::string first = "step 10 loss 2.5000 rate 123";
  TakenNumbers taken;
  taken.add(first.data() + 5, Field::step, Kind::counted, 1);
  taken.add(first.data() + 13, Field::loss, Kind::measured, 1);
  taken.add(first.data() + 25, Field::tokens_per_second, Kind::measured, 1);
  for (const char* behind : {"7", "-7", " 7", "        7"}) {
    LineShapes shapes;
    shapes.learn(first, taken);
    const std::string line = "step 11 loss 2.4000 rate   ", longer = line + behind;
    Step step;
    EXPECT_EQ(shapes.read(std::string_view(longer).substr(0, line.size()), 1, step, true), 0u) << behind;
    EXPECT_FALSE(step[Field::tokens_per_second]);
  }
}

}  // namespace
}  // namespace assay::spec::audit::line_shape_test
