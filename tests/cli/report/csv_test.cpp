// labels: unit cli
#include "impl/report/csv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "impl/report/write_report.hpp"
#include "spec/record/event.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::report::csv_test {
namespace {

using namespace spec::record;

/// Of a CSV without quotes.
std::vector<std::vector<std::string>> cells(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.ends_with('\r'));
    line.back() = ',';
    rows.emplace_back();
    for (std::size_t at = 0; at < line.size(); at = line.find(',', at) + 1)
      rows.back().push_back(line.substr(at, line.find(',', at) - at));
  }
  return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row,
                 const std::string& name) {
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    if (rows[0][i] == name) return rows.at(row).at(i);
  ADD_FAILURE() << "no column " << name;
  return {};
}

NamedRun run_of(const std::string& name, std::vector<Event> events) {
  events.insert(events.begin(), tests::example_start());
  return {name, assemble(events)};
}

TEST(CsvCli, EveryNumberReadsBackToTheSameBits) {
  Step step = tests::example_step(1);
  step.loss = 0.1 + 0.2;
  step.mfu = 1.0 / 3;
  step.phases.update = 1e-300;
  step.elapsed_seconds = 12.25;
  const auto rows = cells(csv({run_of("a", {step})}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(std::strtod(cell(rows, 1, "loss").c_str(), nullptr), step.loss);
  EXPECT_EQ(std::strtod(cell(rows, 1, "mfu").c_str(), nullptr), *step.mfu);
  EXPECT_EQ(std::strtod(cell(rows, 1, "phases.update").c_str(), nullptr), step.phases.update);
  EXPECT_EQ(cell(rows, 1, "elapsed_seconds"), "12.25");
  EXPECT_EQ(cell(rows, 1, "sample_hash"), "00ff");
  EXPECT_EQ(rows[0][0], "run");
  EXPECT_EQ(rows[0][1], "event");
  EXPECT_EQ(rows[0][2], "step");
}

TEST(CsvCli, ColumnsAreTheRecordsFields) {
  const auto rows = cells(csv({run_of("a", {tests::example_step(1)})}));
  Step all = tests::example_step(1);
  for (const std::string& field : field_names("step")) {
    const bool there = std::find(rows[0].begin(), rows[0].end(), field) != rows[0].end();
    const bool has_parts = field == "phases" || field.starts_with("sources");  // a mixture's, named by source
    const bool given = spec::record::to_json(all).find("\"" + field.substr(field.rfind('.') + 1) + "\"") !=
                       std::string::npos;
    EXPECT_EQ(there, given && !has_parts) << field;
  }
}

TEST(CsvCli, SourcesOfAMixtureHaveColumnsByName) {
  Step step = tests::example_step(1);
  step.sources = {{.name = "web", .tokens = 96, .valid_tokens = 90, .loss = 2.5, .epochs = 0.25},
                  {.name = "code", .tokens = 32, .valid_tokens = 0, .loss = {}, .epochs = 1.5}};
  const auto rows = cells(csv({run_of("a", {step})}));
  EXPECT_EQ(cell(rows, 1, "sources.web.loss"), "2.5");
  EXPECT_EQ(cell(rows, 1, "sources.web.tokens"), "96");
  EXPECT_EQ(cell(rows, 1, "sources.code.epochs"), "1.5");
  EXPECT_EQ(std::count(rows[0].begin(), rows[0].end(), "sources.code.loss"), 0) << "it had no valid token";
}

TEST(CsvCli, RunsAndEventsComeInTheirOrder) {
  Validation validation;
  validation.step = 1, validation.loss = 3;
  SkippedStep skipped;
  skipped.step = 2, skipped.reason = "rank 0, \"qkv\", NaN";
  const std::string text =
      csv({run_of("a", {tests::example_step(1), validation, skipped, tests::example_step(3)}),
           run_of("b, c", {tests::example_step(1)})});
  std::string order;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    order += line.substr(0, line.find(',', line.find(',') + 1)) + ";";
  EXPECT_EQ(order, "run,event;a,step;a,validation;a,skipped;a,step;\"b, c\";");
  EXPECT_NE(text.find("\"rank 0, \"\"qkv\"\", NaN\""), std::string::npos);
}

TEST(CsvCli, NumbersThatAreNotFiniteAreNamed) {
  Step step = tests::example_step(1);
  step.loss = NAN, step.gradient_norm = INFINITY;
  const auto rows = cells(csv({run_of("a", {step})}));
  EXPECT_EQ(cell(rows, 1, "loss"), "nan");
  EXPECT_EQ(cell(rows, 1, "gradient_norm"), "inf");
}

TEST(CsvCli, IsWrittenBesideTheRecord) {
  const tests::Scratch scratch;
  scratch.write("run.jsonl", to_json(Event(tests::example_start())) + "\n" +
                                 to_json(Event(tests::example_step(1))) + "\n");
  const Written written = write_report({scratch.path().string()}, "", "", Form::csv);
  EXPECT_EQ(written.file, scratch.path() / "report.csv");
  std::ifstream file(written.file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(cells(text).size(), 2u);
}

}  // namespace
}  // namespace assay::impl::report::csv_test
