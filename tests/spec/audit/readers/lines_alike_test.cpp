// labels: property
// Whole logs whose lines are read at one go, because a line before them was alike, give what each line gives
// on its own; and steps that are kept as text are those that are kept whole. The lines one by one:
// line_shape_test.cpp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/readers/read_lines.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::lines_alike_test {
namespace {

using tests::joined;
using tests::LogFormat;
using tests::read_lines;

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
  auto alike = read_lines(log, told), unlike = read_lines(with_lines_unlike(format, log), told);
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
  const std::string differs =
      difference(read_lines(log, told, true), read_lines(log, told, false, odd_steps()));
  if (!differs.empty()) RC_FAIL(std::string(tests::to_string(format)) + ": " + differs);
}

}  // namespace
}  // namespace assay::spec::audit::lines_alike_test
