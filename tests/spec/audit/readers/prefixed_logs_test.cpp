// labels: unit property
// Logs whose every line stands behind what a container, a remote shell or a scheduler puts there.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <sstream>

#include "spec/audit/readers/line_prefix.hpp"
#include "spec/audit/readers/prefix_form.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/readers/line_prefixes.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::prefixed_logs_test {
namespace {

using tests::behind;
using tests::LogFormat;
using tests::Prefix;
using tests::prefixes;
using tests::two_digits;

RunRecord read_one(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

constexpr const char* two_steps =
    "iter 0: loss 10.9876, time 5500.11ms, mfu -100.00%\n"
    "iter 10: loss 9.1234, time 134.20ms, mfu 37.10%\n";

const std::vector<LogFormat> formats = {
    LogFormat::llm_tii, LogFormat::torchtitan, LogFormat::kempnerforge, LogFormat::megatron,
    LogFormat::nanogpt, LogFormat::llmc,       LogFormat::llmq,         LogFormat::hugging_face_console,
    LogFormat::assay};

/// What differs, but for ranks; empty when nothing does.
std::string difference(const RunRecord& a, const RunRecord& b) {
  if (a.steps.size() != b.steps.size())
    return std::to_string(a.steps.size()) + " steps and " + std::to_string(b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i)
    for (std::size_t f = 0; f < field_count; ++f) {
      const auto &x = a.steps[i].fields[f], &y = b.steps[i].fields[f];
      const auto field = static_cast<Field>(f);
      if (field == Field::rank) continue;
      const bool both_nan = x && y && std::isnan(x->value) && std::isnan(y->value);
      if (x.has_value() != y.has_value() || (x && !both_nan && (x->low != y->low || x->high != y->high)))
        return std::string(to_string(field)) + " of step " + std::to_string(i);
    }
  for (std::size_t s = 0; s < setting_count; ++s) {
    const auto &x = a.settings[s], &y = b.settings[s];
    if (x.has_value() != y.has_value() || (x && x->value != y->value))
      return std::string(to_string(static_cast<Setting>(s)));
  }
  for (const auto which : {&RunRecord::gpu, &RunRecord::model, &RunRecord::dtype, &RunRecord::schedule,
                           &RunRecord::weights, &RunRecord::parallelism})
    if (a.*which != b.*which) return "\"" + a.*which + "\" and \"" + b.*which + "\"";
  return a.unread_lines == b.unread_lines ? "" : "lines that could not be read";
}

TEST(PrefixedLogsSpec, SettingsAndStepsOfEveryTrainerAreThoseOfTheBareLog) {
  for (const LogFormat format : formats)
    for (const Prefix& prefix : prefixes())
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const std::string log = tests::render(tests::simulate(format, seed));
        const RunRecord bare = read_one(log), prefixed = read_one(behind(prefix, log));
        ASSERT_EQ(difference(bare, prefixed), "")
            << tests::to_string(format) << " behind " << prefix.name << ", seed " << seed;
        EXPECT_FALSE(prefixed.settings_behind) << tests::to_string(format) << " behind " << prefix.name;
      }
}

/// As Docker keeps it: a line in an object, one too long in several.
std::string in_container(const std::string& log) {
  std::istringstream in(log);
  std::string out, line;
  for (std::size_t i = 0; std::getline(in, line); ++i) {
    std::string text;
    for (const char c : line + "\n")
      text += c == '\n'   ? "\\n"
              : c == '"'  ? "\\\""
              : c == '\\' ? "\\\\"
              : c == '\t' ? "\\t"
              : c == '<'  ? "\\u003c"
                          : std::string(1, c);
    const std::string end =
        "\",\"stream\":\"stdout\",\"time\":\"2025-05-01T10:00:" + two_digits(i % 60) + ".123456789Z\"}\n";
    if (i % 7 == 3 && line.size() > 20 && line.find_first_of("\"\\\t<") == std::string::npos)
      out += "{\"log\":\"" + text.substr(0, 9) + end + "{\"log\":\"" + text.substr(9) + end;
    else
      out += "{\"log\":\"" + text + end;
  }
  return out;
}

TEST(PrefixedLogsSpec, WhatDockerKeepsIsTheBareLog) {
  for (const LogFormat format : formats)
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const std::string log = tests::render(tests::simulate(format, seed));
      const RunRecord bare = read_one(log), kept = read_one(in_container(log));
      ASSERT_EQ(difference(bare, kept), "") << tests::to_string(format) << ", seed " << seed;
      EXPECT_FALSE(kept.truncated);
    }
  const std::string json = tests::render(tests::simulate(LogFormat::hugging_face, 1));
  EXPECT_EQ(difference(read_one(json), read_one(in_container(json))), "") << "a document";
}

TEST(PrefixedLogsSpec, LinesOfDockersObjectsKeepTheirNumbers) {
  const std::string end = "\",\"stream\":\"stderr\",\"time\":\"2025-05-01T10:00:00Z\"}\n";
  const RunRecord run =
      read_one("{\"log\":\"Overriding: batch\" cut\n{\"log\":\"nothing\\n" + end +
               "{\"log\":\"iter 0: loss 10.9876, time 55" + end + "{\"log\":\"00.11ms, mfu -100.00%\\n" +
               end + "{\"log\":\"iter 10: loss 9.1234, time 134.20ms, mfu 37.10%\\n" + end);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps[0].line, 4);
  EXPECT_EQ(run.steps[1].line, 5);
  EXPECT_DOUBLE_EQ(run.steps[0][Field::seconds]->value, 5.50011);
}

TEST(PrefixedLogsSpec, NumbersOfLinesAreNoRanks) {
  const std::string log = tests::render(tests::simulate(LogFormat::megatron, 2));
  const Prefix grep{"", [](std::size_t i) { return std::to_string(i + 4) + ":"; }};
  const RunRecord run = read_one(behind(grep, log));
  EXPECT_EQ(run.ranks, 1);
  for (const Step& step : run.steps) EXPECT_FALSE(step[Field::rank]);
  // Ranks may stand in any order, and one of them be the only one that prints.
  const std::string steps = two_steps;
  const std::size_t half = steps.find('\n') + 1;
  EXPECT_EQ(read_one("0: " + steps.substr(0, half) + "1: " + steps.substr(0, half)).ranks, 2);
  EXPECT_EQ(
      (*read_one("7: " + steps.substr(0, half) + "7: " + steps.substr(half)).steps[0][Field::rank]).value, 7);
}

TEST(PrefixedLogsSpec, ARankBehindAHostIsTheStepsRank) {
  const std::string log = tests::render(tests::simulate(LogFormat::nanogpt, 1));
  std::istringstream in(log);
  std::string line, both;
  while (std::getline(in, line))
    for (const char* const rank : {"0", "1"})
      both += "node0" + std::string(rank) + ": [rank" + rank + "]:" + line + "\n";
  const RunRecord run = read_one(both);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.steps_of_rank, read_one(log).steps_seen);
}

TEST(PrefixedLogsSpec, SettingsBehindAPrefixThatIsNotKnownAreTold) {
  for (const LogFormat format : {LogFormat::megatron, LogFormat::llmc}) {
    const std::string log = tests::render(tests::simulate(format, 3));
    const RunRecord bare = read_one(log);
    const RunRecord run = read_one(behind({"",
                                           [](std::size_t i) {
                                             return std::string(i % 2 ? "trainer" : "worker") + " @ n" +
                                                    std::to_string(i) + " >> ";
                                           }},
                                          log));
    ASSERT_TRUE(run.settings_behind) << tests::to_string(format);
    EXPECT_TRUE(run.settings_behind->prefix.find(" @ n") != std::string::npos) << run.settings_behind->prefix;
    EXPECT_GE(run.settings_behind->count, 2);
    EXPECT_EQ(run.steps.size(), bare.steps.size());
    EXPECT_FALSE(bare.settings_behind);
  }
}

TEST(PrefixedLogsSpec, OneLineAloneMayBeProse) {
  const std::string steps = two_steps;
  EXPECT_FALSE(read_one("now >> batch_size = 12\n" + steps).settings_behind);
  const RunRecord run = read_one("a1 >> batch_size = 12\nsome words\na22 >> block_size = 1024\n" + steps);
  ASSERT_TRUE(run.settings_behind);
  EXPECT_EQ(run.settings_behind->count, 2);
  EXPECT_EQ(run.settings_behind->line, 1);
  EXPECT_EQ(run.settings_behind->prefix, "a1 >> ");
}

TEST(PrefixedLogsSpec, SettingsBehindWhatNoStepStandsBehindAreTold) {
  const std::string steps = two_steps;
  for (const std::string prefix : {"INFO:root:", "[a][b]", "run.log:7:"}) {
    const RunRecord run = read_one(prefix + "batch_size = 12\n" + prefix + "block_size = 1024\n" + steps);
    ASSERT_TRUE(run.settings_behind) << prefix;
    EXPECT_EQ(run.settings_behind->prefix, prefix);
    EXPECT_FALSE(run[Setting::micro]);
  }
}

TEST(PrefixedLogsSpec, CommentsAndProseAreNoSettingsBehindAPrefix) {
  const RunRecord run = read_one(
      "# gradient_accumulation_steps = 5\n# old: batch_size = 7\n# old: block_size = 9\n"
      "we found batch_size = 12 best\n"
      "iter 0: loss 10.9876, time 5500.11ms, mfu -100.00%\niter 10: loss 9.1234, time 134.20ms, mfu "
      "37.10%\n");
  EXPECT_FALSE(run.settings_behind);
  EXPECT_FALSE(run[Setting::micro]);
}

TEST(PrefixedLogsSpec, WhatAStepLineDoesNotStandBehindIsNoPrefix) {
  // The lines of nanotron begin as a host's do; a key of a header stands in the head of a name.
  const LineFormat megatron = megatron_format(), nanogpt = nanogpt_format();
  EXPECT_TRUE(LinePrefix(megatron,
                         "iteration: 4 / 50 | consumed_tokens: 1.02M | elapsed_time_per_iteration_ms: 214 | "
                         "tokens_per_sec: 1.22M | lm_loss: 11.1 |")
                  .none());
  const LinePrefix node(nanogpt, "node7: iter 0: loss 10.9876, time 5500.11ms, mfu -100.00%");
  Line line{"node12: batch_size = 12", 1};
  EXPECT_TRUE(node.take(line));
  EXPECT_EQ(line.text, "batch_size = 12");
  line.text = "Layers: 12";
  EXPECT_FALSE(node.take(line));
  EXPECT_EQ(line.text, "Layers: 12");
}

TEST(PrefixedLogsSpec, TheTrainersOwnStampIsItsClock) {
  const std::string log = tests::render(tests::simulate(LogFormat::torchtitan, 5));
  const Prefix stamps{"", [](std::size_t) { return "2020-01-01 00:00:00 "; }};
  const RunRecord bare = read_one(log), prefixed = read_one(behind(stamps, log));
  ASSERT_TRUE(bare.steps.front()[Field::elapsed]);
  EXPECT_EQ(difference(bare, prefixed), "");
}

TEST(PrefixedLogsSpec, WhatOnlyBeginsLikeThePrefixIsNone) {
  const PrefixForm form("worker 17 of 64 | ");
  EXPECT_EQ(form.length("worker 3 of 64 | lr = 3e-4"), 17u);
  EXPECT_EQ(form.length("worker threads = 8"), 0u);
  EXPECT_EQ(form.length("worker 3"), 0u);
}

}  // namespace
}  // namespace assay::spec::audit::prefixed_logs_test
