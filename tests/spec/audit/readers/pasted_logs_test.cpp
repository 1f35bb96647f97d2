// labels: unit
// Logs as they are pasted into issues: between Markdown's fences, and with tabs in place of blanks.
#include <gtest/gtest.h>

#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated_run.hpp"

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
