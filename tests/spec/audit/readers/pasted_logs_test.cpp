// labels: unit
// Logs as they are pasted into issues: between Markdown's fences, with lines left out, several runs in one,
// tabs in place of blanks.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::pasted_logs_test {
namespace {

std::string fenced(const std::string& word, const std::string& text) {
  return "```" + word + "\n" + text + "```\n";
}

TEST(PastedLogsSpec, LinesBetweenFencesAreReadAsTheyStand) {
  const std::string json =
      "{\"step\": 1, \"loss\": 2.5, \"seconds\": 0.5}\n{\"step\": 2, \"loss\": 2.4, \"seconds\": 0.5}\n";
  const std::string csv = "step,loss\n1,2.5\n2,2.4\n";
  for (const std::string& text :
       {fenced("json", json), fenced("", json), fenced("jsonl\r", json), fenced("csv", csv)}) {
    const RunRecord run = tests::read_text(text);
    ASSERT_EQ(run.steps.size(), 2u) << text;
    EXPECT_EQ(run.unread_lines, 0) << text;
    EXPECT_EQ(run.steps[0].line,
              run.format.name == "mapped" && text.find("csv") != std::string::npos ? 3 : 2);
  }
  const tests::SimulatedRun own = tests::simulate(tests::LogFormat::assay, 7);
  EXPECT_EQ(tests::read_text(fenced("", render(own))).unread_lines, 0);
}

/// All of the text between the fences is the document: what else stands there is refused.
TEST(PastedLogsSpec, ADocumentBetweenFencesIsReadAsItStands) {
  for (const auto format : {tests::LogFormat::hugging_face, tests::LogFormat::llm_tii_json}) {
    const std::string document = render(tests::simulate(format, 7));
    const RunRecord whole = tests::read_text(document);
    for (const std::string& text :
         {fenced("json", document), fenced("", document + "\n"), "\n" + fenced("json\r", document) + "\n",
          "```\n" + document + "\n```", "```json\n" + document}) {
      const RunRecord run = tests::read_text(text);
      EXPECT_EQ(run.format.name, whole.format.name);
      ASSERT_EQ(run.steps.size(), whole.steps.size());
      EXPECT_EQ(run.steps.back()[Field::loss]->value, whole.steps.back()[Field::loss]->value);
      EXPECT_GT(run.steps.front().line, whole.steps.front().line);
      EXPECT_EQ(contradictions(run), "");
    }
    for (const std::string& text : {fenced("json", document + "and so on\n"), fenced("", document) + "{}\n",
                                    fenced("", document) + fenced("", document), document + "```\n"})
      EXPECT_THROW(tests::read_text(text), UserError) << text.substr(text.size() - 40);
  }
}

/// nanoGPT's lines 0 to 290 by tens, with `between` behind the third one and `missing` lines not there.
std::string excerpt(const std::string& between, int missing) {
  std::string out;
  for (int i = 0; i < 30; ++i) {
    if (i == 3) out += between;
    if (i < 3 || i >= 3 + missing)
      out += "iter " + std::to_string(10 * i) + ": loss 3.0668, time 28.71ms, mfu 40.80%\n";
  }
  return out;
}

TEST(PastedLogsSpec, LinesThatTheLogSaysAreLeftOutAreNotLost) {
  const auto steps = [](const std::string& log) { return judge("steps", tests::read_text(log)); };
  for (const char* said :
       {"...\n", "... ...\n", "  [...]\n", "<snip>\n", "13:<snip>\n", "\xe2\x80\xa6\n",
        "[... 200 lines omitted ...]\n", "-- Output Omitted --\r\n", "(truncated)\n", "\xe2\x8b\xae\n",
        "/* ... */\n", "~~~ snip ~~~\n", "... (270 more lines) ...\n", "--- output truncated ---\n",
        "(cut)\n", "\xe2\x8b\xaf\n", "=== snip ===\n", "`...`\n", "lines 30-39 omitted\n"}) {
    const Result there = steps(excerpt(said, 10));
    EXPECT_EQ(there.verdict, Verdict::holds) << said;
    EXPECT_NE(there.note.find("left out, as the log says itself, in 1 place"), std::string::npos) << said;
    EXPECT_EQ(steps(excerpt(said, 0)).note, "") << "nothing is missing there";
  }
  for (const char* said : {"", "..\n", "1.2.3.4\n", "compiling the model...\n", "snippets\n", "lines\n",
                           "[lines]\n", "30 lines\n", "30...\n"})
    EXPECT_EQ(steps(excerpt(said, 10)).verdict, Verdict::contradicts) << said;
  // It speaks for its own place.
  EXPECT_EQ(steps("...\n" + excerpt("", 10)).verdict, Verdict::contradicts);
  EXPECT_EQ(steps(excerpt("", 10) + "...\n").verdict, Verdict::contradicts);
}

/// `log` without its lines from `from` to before `to`, counted from 1, and `said` in their place.
std::string without(const std::string& log, std::int64_t from, std::int64_t to, const std::string& said) {
  std::istringstream in(log);
  std::string out, line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    if (number == from) out += said;
    if (number < from || number >= to) out += line + "\n";
  }
  return out;
}

/// Of every trainer whose lines name steps; of logs that are too long to be kept whole, too.
TEST(PastedLogsSpec, EveryTrainersLogMaySayThatLinesAreLeftOut) {
  using F = tests::LogFormat;
  for (const F format : {F::llm_tii, F::torchtitan, F::kempnerforge, F::megatron, F::nanogpt, F::llmc,
                         F::nanotron, F::build_nanogpt})
    for (const std::int64_t steps : {900, 9000}) {
      const std::string log = tests::render(tests::simulate(format, 3, steps));
      const std::vector<Step> kept = tests::read_text(log).steps;
      const std::int64_t from = kept[30].line, to = kept[36].line;
      const auto of = [&](const std::string& said) {
        return judge("steps", tests::read_text(without(log, from, to, said))).verdict;
      };
      EXPECT_EQ(of("..\n"), Verdict::contradicts) << to_string(format) << " " << steps;
      EXPECT_EQ(of("...\n"), Verdict::holds) << to_string(format) << " " << steps;
    }
}

/// A report that says so in ever so many places.
TEST(PastedLogsSpec, LinesMayBeLeftOutInAnyNumberOfPlaces) {
  std::string log;
  for (int i = 0; i < 5000; ++i)
    log += (i % 4 ? "" : "...\n") + ("iter " + std::to_string(10 * (i + i / 4 * 7))) +
           ": loss 3.0668, time 28.71ms, mfu 40.80%\n";
  EXPECT_EQ(judge("steps", tests::read_text(log)).verdict, Verdict::holds);
}

/// Two of Megatron-LM's lines, the first of step `step`.
std::string of_megatron(const std::string& day, int step, const std::string& planned, int batch) {
  std::string out;
  for (int i = step; i < step + 2; ++i)
    out += " [" + day + " 15:08:" + std::to_string(10 + i - step) + "] iteration " + std::to_string(i) +
           "/ " + planned + " | consumed samples: " + std::to_string(i * batch) +
           " | elapsed time per iteration (ms): 1010.4 | learning rate: 3.0E-04 | global batch size: " +
           std::to_string(batch) + " | lm loss: 4.85812E+00 |\n";
  return out;
}

TEST(PastedLogsSpec, RunsThatAreQuotedOneBehindTheOtherAreTwo) {
  const auto runs = [](const std::string& log) {
    std::istringstream in(log);
    return read_logs(in, "quoted", {}).size();
  };
  const std::string first = of_megatron("2026-09-14", 44, "900", 32);
  EXPECT_EQ(runs(first + of_megatron("2026-09-08", 561, "900", 32)), 2u) << "days before";
  EXPECT_EQ(runs(first + of_megatron("2026-09-13", 46, "900", 32)), 1u) << "a clock that was set";
  EXPECT_EQ(runs(first + of_megatron("2026-09-30", 46, "900", 32)), 1u) << "weeks in a queue";
  EXPECT_EQ(runs(first + of_megatron("2026-09-14", 20, "800", 64)), 2u)
      << "another plan and batch, from before";
  const std::string last =
      of_megatron("2026-09-14", 100, "900", 32) + of_megatron("2026-09-14", 200, "900", 32);
  EXPECT_EQ(runs(last + of_megatron("2026-09-15", 150, "900", 32)), 1u) << "begun again from 149";
  EXPECT_EQ(runs(last + "[after training is done] datetime: 2026-09-14\n" +
                 of_megatron("2026-09-15", 150, "900", 32)),
            2u);
}

TEST(PastedLogsSpec, TabsInPlaceOfBlanksAreBlanks) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::string log = render(tests::simulate(tests::LogFormat::torchtitan, seed));
    std::string tabs = log;
    for (std::size_t at = 0; (at = tabs.find("  ", at)) != std::string::npos;) tabs.replace(at, 2, "\t");
    ASSERT_NE(tabs, log);
    const RunRecord run = tests::read_text(tabs), same = tests::read_text(log);
    ASSERT_EQ(run.steps.size(), same.steps.size());
    EXPECT_EQ(run.unread_lines, 0);
    for (std::size_t i = 0; i < run.steps.size(); ++i)
      for (std::size_t field = 0; field < field_count; ++field) {
        const auto &here = run.steps[i].fields[field], &there = same.steps[i].fields[field];
        ASSERT_EQ(here.has_value(), there.has_value()) << to_string(static_cast<Field>(field));
        if (here) {
          EXPECT_EQ(here->value, there->value);
        }
      }
    EXPECT_EQ(contradictions(run), "");
  }
}

}  // namespace
}  // namespace assay::spec::audit::pasted_logs_test
