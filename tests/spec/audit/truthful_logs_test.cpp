// labels: property slow
// 300 truthful logs of every trainer hold no contradiction, whole or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/audit/confusion.hpp"
#include "tests/support/simulated/read.hpp"

namespace assay::spec::audit::truthful_logs_test {
namespace {

using tests::LogFormat;
using tests::SimulatedRun;
using tests::confusion::truthful_seeds;

TEST(AuditFaultsSpec, TruthfulLogsOfEveryTrainerAreConsistent) {
  for (std::size_t format = 0; format < tests::log_formats; ++format)
    for (std::uint64_t seed = 0; seed < truthful_seeds; ++seed) {
      const SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const RunRecord record = record_of(run, render(run));
      ASSERT_TRUE(consistent(record)) << to_string(run.format) << ", seed " << seed << "\n"
                                      << contradictions(record);
    }
}

/// Of few logged steps, slower than the others for being logged, printed to few digits: a truthful clock,
/// total and mean contradict nothing; those of a clock that is a fifth too slow do, where times are printed
/// well.
TEST(AuditFaultsSpec, TruthfulLogsOfFewStepsAreConsistent) {
  int well = 0, told = 0;
  for (std::uint64_t seed = 0; seed < 2 * truthful_seeds; ++seed) {
    SimulatedRun run = tests::simulate(LogFormat::csv, seed, 400);
    log_seldom(run, seed);
    double seconds = 0;
    for (const tests::SimulatedStep& step : run.steps) seconds += step.seconds;
    const auto log = [&](double clock) {
      tests::Report report = tests::report(run);
      for (tests::ReportedStep& step : report.steps) *step[Field::elapsed] *= clock;
      char stated[100];
      std::snprintf(stated, sizeof stated, "total_seconds=%.6g,average_seconds=%.6g", seconds * clock,
                    seconds * clock / 400);
      return record_of(run, render(run, report), stated);
    };
    const RunRecord record = log(1);
    ASSERT_TRUE(consistent(record)) << "seed " << seed << "\n" << contradictions(record);
    EXPECT_EQ(judge("wall_clock", record).verdict, Verdict::holds) << "seed " << seed;
    if (run.digits_of_time < 3 || run.log_every < 5 || seconds < 40) continue;
    ++well;
    for (const char* id : {"wall_clock", "total_seconds", "average_seconds"})
      told += judge(id, log(0.8)).verdict == Verdict::contradicts;
  }
  EXPECT_GT(well, 100);
  EXPECT_GT(told, 2 * well);
}

/// Of a long log's rounded rates every 128th fits several schedules; the one that was meant has to be found.
TEST(AuditFaultsSpec, ALongTruthfulLogIsConsistent) {
  SimulatedRun run = tests::simulate(tests::LogFormat::kempnerforge, 11, 72'994);
  run.log_every = 1;
  const RunRecord record = record_of(run, render(run));
  EXPECT_LT(record.steps.size(), 72'994u);
  EXPECT_TRUE(consistent(record)) << contradictions(record);
}

/// Of a long log not all lines are kept, and those that are cut lost their count of skipped iterations: how
/// far the schedule lags is then known from the rates alone.
TEST(AuditFaultsSpec, ALongTruthfulLogOfCutLinesAndSkippedStepsIsConsistent) {
  int tried = 0;
  for (std::uint64_t seed = 1; tried < 4; ++seed) {
    SimulatedRun run = tests::simulate(tests::LogFormat::megatron, seed, 12'000);
    if (!run.fp16 || run.log_every != 1) continue;
    ++tried;
    std::istringstream whole(render(run));
    std::string log;
    std::size_t n = 0;
    for (std::string line; std::getline(whole, line);) {
      const bool of_step = line.find(" iteration ") != std::string::npos && line.ends_with('|');
      if (of_step && ++n > 12 && n % 2 == 0) line.resize(line.size() - (40 + n % 60));
      log += line + "\n";
    }
    const RunRecord record = record_of(run, log);
    EXPECT_GT(record.steps_seen, static_cast<std::int64_t>(record.steps.size()));
    EXPECT_TRUE(consistent(record)) << "seed " << seed << "\n" << contradictions(record);
  }
}

/// The formats whose lines each stand for themselves, so that a log without some of them is still a log.
bool is_of_lines(LogFormat format) {
  return format != LogFormat::llm_tii_json && format != LogFormat::llmq_json &&
         format != LogFormat::hugging_face && format != LogFormat::csv && format != LogFormat::json_lines &&
         format != LogFormat::assay;
}

/// The log without the lines that `drop` takes.
template <class Drop>
std::string without(const std::string& log, Drop drop) {
  std::istringstream in(log);
  std::string out;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);)
    if (!drop(line, ++number)) out += line + "\n";
  return out;
}

/// What nanoGPT's header says, to as many digits as it prints.
std::string nanogpt_facts(const SimulatedRun& run) {
  char text[200];
  std::snprintf(text, sizeof text, ",parameters=%.2fM,layers=%lld,width=%lld,heads=%lld",
                run.parameters / 1e6, static_cast<long long>(run.model.layers),
                static_cast<long long>(run.model.width), static_cast<long long>(run.model.heads));
  return text;
}

/// A truthful log stays one when what stands before its steps is lost, in part or whole, and when the reader
/// states the facts that were lost.
TEST(AuditFaultsSpec, TruthfulLogsWithoutTheirHeadersAreConsistent) {
  int judged = 0;
  for (std::size_t format = 0; format < tests::log_formats; ++format) {
    if (!is_of_lines(static_cast<LogFormat>(format))) continue;
    for (std::uint64_t seed = 0; seed < truthful_seeds; ++seed) {
      const SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const std::string log = render(run);
      const std::int64_t first = record_of(run, log).steps.front().line;
      const auto header = [&](const std::string&, std::int64_t number) { return number < first; };
      const auto peak = [&](const std::string& line, std::int64_t number) {
        return number < first &&
               (line.find("eak") != std::string::npos || line.find("Detected GPU") != std::string::npos);
      };
      const auto one = [&](const std::string&, std::int64_t number) {
        return number < first && number == 1 + static_cast<std::int64_t>(seed) % first;
      };
      std::string facts = "gpu=" + run.gpu + ",gpus=" + std::to_string(run.gpus) +
                          ",sequence_length=" + std::to_string(run.sequence_length);
      if (!run.gpt2 && run.model == find_model(run.model.name)) facts += ",model=" + run.model.name;
      if (run.format == LogFormat::nanogpt) facts += nanogpt_facts(run);
      // Some formats hold no facts, and their reader states them all.
      const bool lost = read_arguments(run).set.empty() || run.format == LogFormat::nanogpt;
      for (const auto& [what, record] :
           {std::pair("without its header", record_of(run, without(log, header))),
            std::pair("without its peak", record_of(run, without(log, peak))),
            std::pair("without one line", record_of(run, without(log, one))),
            std::pair("with its facts stated", record_of(run, without(log, header), lost ? facts : ""))}) {
        ASSERT_TRUE(consistent(record)) << to_string(run.format) << ", seed " << seed << ", " << what << "\n"
                                        << contradictions(record);
        if (usable(record.steps.back()[Field::mfu]))
          judged += judge("mfu", record).verdict == Verdict::holds ||
                    judge("mfu_of_flops_rate", record).verdict == Verdict::holds ||
                    judge("mfu_of_batch", record).verdict == Verdict::holds;
      }
    }
  }
  EXPECT_GT(judged, 1000);  // against the data sheet's peaks, not for want of one
}

/// Logs that are cut off the beginning, and programs that start again from a checkpoint: between two logged
/// steps, so that the first one may be any of the new start.
TEST(AuditFaultsSpec, TruthfulLogsThatBeginInTheMiddleOrAnewAreConsistent) {
  int later = 0;
  for (std::size_t format = 0; format < tests::log_formats; ++format)
    for (std::uint64_t seed = 0; is_of_lines(static_cast<LogFormat>(format)) && seed < truthful_seeds;
         ++seed) {
      SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const std::string log = render(run);
      const RunRecord whole = record_of(run, log);
      if (whole.steps.size() < 4) continue;
      const std::int64_t begin = whole.steps[1 + seed % (whole.steps.size() - 2)].line;
      const std::int64_t first = whole.steps.front().line;
      const RunRecord tail = record_of(run, without(log, [&](const std::string&, std::int64_t number) {
                                         return number < begin && (seed % 2 == 0 || number >= first);
                                       }));
      ASSERT_TRUE(consistent(tail)) << to_string(run.format) << ", seed " << seed << "\n"
                                    << contradictions(tail);
      if (run.format != LogFormat::nanogpt) continue;
      run.resumed_at = 1 + static_cast<std::int64_t>(seed % (run.steps.size() - 1));
      const RunRecord resumed = record_of(run, render(run));
      ASSERT_TRUE(consistent(resumed)) << "resumed at " << run.resumed_at << ", seed " << seed << "\n"
                                       << contradictions(resumed);
      const std::int64_t to_line = (run.log_every - run.resumed_at % run.log_every) % run.log_every;
      later += to_line >= 5;
    }
  EXPECT_GT(later, 20);
}

/// A few lines that somebody chose of a truthful log, each three times as far on as the one before.
TEST(AuditFaultsSpec, TruthfulLogsOfQuotedStepsAreConsistent) {
  for (std::size_t format = 0; format < tests::log_formats; ++format)
    for (std::uint64_t seed = 0; is_of_lines(static_cast<LogFormat>(format)) && seed < truthful_seeds / 3;
         ++seed) {
      const SimulatedRun run = tests::simulate(static_cast<LogFormat>(format), seed);
      const std::string log = render(run);
      const RunRecord whole = record_of(run, log);
      std::vector<std::int64_t> lines;
      for (const Step& step : whole.steps) lines.push_back(step.line);
      const RunRecord quoted =
          record_of(run, without(log, [&](const std::string&, std::int64_t number) {
                      auto step = std::upper_bound(lines.begin(), lines.end(), number) - lines.begin() - 1;
                      while (step > 0 && step % 3 == 0) step /= 3;
                      return step > 1;
                    }));
      ASSERT_TRUE(consistent(quoted)) << to_string(run.format) << ", seed " << seed << "\n"
                                      << contradictions(quoted);
    }
}

}  // namespace
}  // namespace assay::spec::audit::truthful_logs_test
