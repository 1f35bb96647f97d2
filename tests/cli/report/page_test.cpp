// labels: unit cli
#include "impl/report/page.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "impl/report/html.hpp"
#include "impl/report/write_report.hpp"
#include "spec/error.hpp"
#include "spec/record/write.hpp"
#include "spec/text/quantity.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::report::page_test {
namespace {

namespace fs = std::filesystem;
using namespace spec::record;

Run example_run() {
  std::vector<Event> events = {tests::example_start()};
  for (int step = 1; step <= 250; ++step) {
    Step each = tests::example_step(step);
    each.loss = 0.7 + 4.8 / step;
    each.resident_bytes = 400'000'000;
    events.push_back(each);
  }
  events.push_back(Samples{.step = 250,
                           .samples = {{.text = "one plus one is two.", .accepted = true, .sum_right = true}},
                           .judged = 1,
                           .accepted = 1,
                           .sums = 1,
                           .sums_right = 1});
  events.push_back(tests::example_end());
  return assemble(events);
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(PageReport, EscapesMarkupQuotesControlCharactersAndBrokenUtf8) {
  EXPECT_EQ(escaped("<b a='x' c=\"y\">&"), "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;");
  EXPECT_EQ(escaped("\x1b[31m\xff ü"), "\xEF\xBF\xBD[31m\xEF\xBF\xBD ü");
}

TEST(PageReport, GoodputStandsBesideTheRateOfSteps) {
  auto run = example_run();
  EXPECT_EQ(page({{"a", run}}).find("goodput"), std::string::npos) << "of an earlier version";
  run.end->goodput = {.tokens_per_second = 12'800, .seconds = 80, .start_up = 8, .steps = 66, .saves = 6};
  const std::string html = page({{"a", run}});
  EXPECT_NE(html.find("<b>12,800</b><span>tokens/s of wall-clock time (goodput)"), std::string::npos);
  EXPECT_NE(html.find("80.0 s: steps 82.5 %, saves 7.5 %, start-up 10.0 %"), std::string::npos);
}

TEST(PageReport, FiguresOfSeveralStartsAreThoseOfTheWholeRun) {
  std::vector<Event> events = {tests::example_start()};
  const auto steps = [&](int first, int last, double loss) {
    for (int step = first; step <= last; ++step) {
      events.push_back(tests::example_step(step));
      std::get<Step>(events.back()).loss = loss, std::get<Step>(events.back()).tokens = 4000;
    }
  };
  const auto end = [&](double seconds) {
    RunEnd each;
    each.final_loss = 99, each.final_steps = 1;
    each.goodput = {.tokens_per_second = 1, .seconds = seconds, .steps = seconds};
    events.push_back(each);
  };
  steps(1, 8, 2), end(30);
  events.push_back(tests::example_start());
  events.push_back(ResumeFrom{.step = 8, .path = "p"});
  steps(9, 10, 1), end(10);
  const std::string html = page({{"a", assemble(events)}});
  EXPECT_NE(html.find("This run was started 2 times: figures are of the whole run"), std::string::npos);
  EXPECT_NE(html.find("<b>1,000</b><span>tokens/s of wall-clock time (goodput)"), std::string::npos);
  EXPECT_NE(html.find("<b>1.8000</b><span>loss, mean of the last 10 steps"), std::string::npos);
  EXPECT_EQ(page({{"a", example_run()}}).find("was started"), std::string::npos);
}

TEST(PageReport, RoutersShowWhereTheRecordHasThem) {
  auto run = example_run();
  for (const char* text : {"balance loss", "Router entropy", "Load of the busiest expert"})
    EXPECT_EQ(page({{"a", run}, {"b", run}}).find(text), std::string::npos) << text;
  auto sparse = run;
  for (Step& step : sparse.steps) {
    step.balance_loss = 16.25, step.router_z_loss = 80;
    step.load_balance_worst = 1.75, step.load_balance_mean = 1.25, step.router_entropy = 4.125;
  }
  EXPECT_EQ(page({{"a", run}, {"b", sparse}}).find("dropped by the capacity"), std::string::npos);
  for (Step& step : sparse.steps) step.dropped_choices = 0.0625;
  sparse.start.planned_load = 1.43;
  sparse.memory.emplace();
  sparse.memory->planned_bytes = 3 << 20, sparse.memory->moment = "the head";
  EXPECT_NE(
      page({{"b", sparse}}).find("3.00 MiB at the head, with up to 1.43 times the mean rows of experts"),
      std::string::npos);
  const std::string html = page({{"a", run}, {"b", sparse}});
  for (const char* text :
       {"share of choices dropped by the capacity, last step", ">0.0625<", "Choices dropped by the capacity",
        "balance loss, last step", ">16.2500<", ">80.0000<", ">1.75<", ">1.25<", ">4.125<",
        "Load of the busiest expert, worst layer", "Router entropy"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
}

TEST(PageReport, HostileTextsStayText) {
  const std::string hostile = "</title><script>alert('x')</script>\"><img src=x onerror=alert(1)>";
  auto run = example_run();
  run.start.model = run.start.host = run.start.cpu = run.start.os = run.start.version = run.start.time =
      hostile;
  run.start.commit = hostile;
  run.start.data.description = hostile;
  run.start.gpus = {{.name = hostile, .uuid = hostile, .memory_bytes = 1}};
  run.start.settings = {{hostile, hostile}, {"b", std::vector<std::string>{hostile}}};
  run.warnings = {{.step = 1, .code = hostile, .text = hostile}};
  run.samples->samples[0].text = hostile;
  run.end->message = hostile;
  run.end->reason = EndReason::error;
  for (const auto& runs : {std::vector<NamedRun>{{hostile, run}}, {{hostile, run}, {hostile + "2", run}}}) {
    const std::string html = page(runs);
    EXPECT_EQ(html.find("<script"), std::string::npos);
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_EQ(count(html, "</title>"), count(html, "<title>"));
    EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
  }
}

TEST(PageReport, NeedsNothingFromOutside) {
  const std::string html = page({{"a", example_run()}, {"b", example_run()}});
  for (const char* word : {"http", "src=", "url(", "@import", "<script", "<link", "<iframe"})
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(PageReport, ARunWithoutAnEndHasTheFinalLossThatItsEndWouldState) {
  auto run = example_run();
  run.end.reset();
  const std::string html = page({{"a", run}});
  const double loss = mean_loss(run.steps, final_loss_steps).value();
  EXPECT_NE(html.find("<b>" + spec::fixed(loss, 4) + "</b><span>loss, mean of the last 10 steps"),
            std::string::npos);
}

TEST(PageReport, ShowsWhatTheRunReached) {
  const std::string html = page({{"tiny-llama", example_run()}});
  for (const char* word :
       {"<b>0.7196</b>", "<b>0.7123</b>", "<b>99.8 %</b>", "<b>16,384</b>", "floor 0.7123",
        "expected first loss 5.551", "Learning rate", "Gradient norm", "Throughput", "Memory of rank 0",
        "Mean time of a step by phase", "one plus one is two.", "Settings",
        "8 sequences per micro-batch × 2 micro-batches × 2 ranks = <b>32 sequences</b>", "run.directory"})
    EXPECT_NE(html.find(word), std::string::npos) << word;
  EXPECT_EQ(html.find("Warnings"), std::string::npos);
  EXPECT_EQ(html.find("utilisation"), std::string::npos);  // the peak is unknown, so there is no MFU
}

TEST(PageReport, ValidationStandsBesideTheTrainingLoss) {
  auto run = example_run();
  const std::string without = page({{"a", run}});
  EXPECT_EQ(without.find("alidation"), std::string::npos);
  run.start.validation = "16 of 99 held-out samples of 128";
  for (const double loss : {3.25, 1.5, 1.75}) {
    Validation& each = run.validations.emplace_back();
    each.step = static_cast<std::int64_t>(10 * run.validations.size()), each.loss = loss;
    each.perplexity = 5.7546, each.bits_per_byte = 2.5247, each.set_hash = "00ff00ff00ff00ff";
  }
  const std::string one = page({{"a", run}}), two = page({{"a", run}, {"b", example_run()}});
  EXPECT_EQ(count(one, "<circle class=\"dot"), count(without, "<circle class=\"dot") + 6 * 3)
      << "six views of the whole run; the others are of later steps";
  for (const char* text :
       {"<b>1.7500</b><span>validation loss after step 30", "</span>training</li>", "</span>validation</li>",
        "1.7500 after step 30, perplexity 5.755, 2.5247 bits per byte; lowest 1.5000 after step 20",
        "16 of 99 held-out samples of 128", "00ff00ff00ff00ff"})
    EXPECT_NE(one.find(text), std::string::npos) << text;
  EXPECT_NE(two.find("</span>a, validation</li>"), std::string::npos);
  // Of another set no loss is the lowest.
  run.validations[1].set_hash = "ff00ff00ff00ff00";
  EXPECT_NE(page({{"a", run}})
                .find("1.7500 after step 30, perplexity 5.755, 2.5247 bits per byte; on another "
                      "set, not to be compared, 1.5000 after step 20"),
            std::string::npos);
}

TEST(PageReport, AMixtureHasACurveForEachSource) {
  auto run = example_run();
  EXPECT_EQ(page({{"a", run}}).find("Loss by source"), std::string::npos);
  for (Step& step : run.steps)
    step.sources = {{.name = "web", .tokens = 96, .valid_tokens = 96, .loss = 2.5, .epochs = 0.25},
                    {.name = "code", .tokens = 32, .valid_tokens = 32, .loss = 1.5, .epochs = 0.5}};
  const std::string one = page({{"a", run}}), two = page({{"a", run}, {"b", run}});
  EXPECT_NE(one.find("Loss by source"), std::string::npos);
  EXPECT_NE(one.find("</span>web</li>"), std::string::npos);
  EXPECT_NE(two.find("</span>b, code</li>"), std::string::npos);
}

TEST(PageReport, CurvesAreByStepTokensAndTimeAndLossesOnTwoAxes) {
  const std::string html = page({{"a", example_run()}});
  for (const char* x : {"step", "tokens", "time"}) {
    const std::string view = std::string("<svg class=\"view x-") + x;
    for (const char* zoom : {" z-all", " z-half", " z-tenth"}) {
      EXPECT_EQ(count(html, view + zoom + " y-linear\""), 2u) << "loss and norm";
      EXPECT_EQ(count(html, view + zoom + " y-log\""), 2u);
      EXPECT_EQ(count(html, view + zoom + "\""), 1u) << "throughput";
    }
    EXPECT_EQ(count(html, std::string("id=\"x-") + x + "\""), 1u);
  }
  EXPECT_NE(html.find("aria-label=\"Loss by tokens, nats per token\""), std::string::npos);
  for (const char* values : {"<title>step ", "<title>tokens ", "<title>s "})
    EXPECT_GT(count(html, values), 3 * 60u) << values;
}

TEST(PageReport, ALossAboveThatOfAUniformGuessClosesNoGap) {
  auto run = example_run();
  for (Step& step : run.steps) step.loss = 7;
  const std::string html = page({{"a", run}});
  EXPECT_EQ(html.find("of the gap to the floor"), std::string::npos);
}

TEST(PageReport, TensorRanksAreRanks) {
  auto run = example_run();
  run.start.tensor_ranks = 4;
  const std::string one = page({{"a", run}}), two = page({{"a", run}, {"b", example_run()}});
  EXPECT_NE(one.find("2 micro-batches × 2 data-parallel ranks of 4 tensor ranks = <b>32 sequences</b>"),
            std::string::npos);
  EXPECT_NE(two.find(">8, 2 data-parallel ranks of 4 tensor ranks<"), std::string::npos);
}

TEST(PageReport, TagsAreBalanced) {
  const std::string html = page({{"a", example_run()}, {"b", example_run()}});
  for (const std::string tag :
       {"section", "figure", "svg", "table", "tr", "td", "th", "ul", "li", "div", "p", "tbody"})
    EXPECT_EQ(count(html, "<" + tag + ">") + count(html, "<" + tag + " "), count(html, "</" + tag + ">"))
        << tag;
}

TEST(PageReport, RunsAreComparedAndDifferencesMarked) {
  auto other = example_run();
  other.start.settings = {{"run.directory", std::string("elsewhere")}};
  const std::string html = page({{"a", example_run()}, {"b", other}});
  EXPECT_EQ(count(html, "<tr class=\"differs\">"), 1u);
  EXPECT_NE(html.find("No setting but the folder"), std::string::npos);
  other.start.settings.emplace_back("optimizer.clip", 0.5);
  const std::string clipped = page({{"a", example_run()}, {"b", other}});
  const std::size_t first = clipped.find("<code>optimizer.clip</code>");
  EXPECT_LT(clipped.find("What differs"), first);
  EXPECT_LT(first, clipped.find("tokens per step")) << "what differs stands ahead of all else";
  EXPECT_EQ(count(clipped, "<code>optimizer.clip</code>"), 2u) << "and among all settings";
  other.start.settings.pop_back();
  EXPECT_NE(html.find("2 runs compared"), std::string::npos);
  EXPECT_EQ(count(page({{"a", other}, {"b", other}}), "<tr class=\"differs\">"), 0u);
}

/// Rendered at 1,280 and 500 pixels, no element is wider than what holds it: columns share the width, and
/// whatever stands in a cell is broken there.
TEST(PageReport, TablesOfSeveralRunsShareTheWidth) {
  auto run = example_run();
  run.start.settings.emplace_back("train.seed", std::int64_t{1});
  auto other = run;
  other.start.settings.back().second = std::int64_t{2};
  const std::string one = page({{"a", run}}), three = page({{"a", run}, {"b", other}, {"c", run}});
  EXPECT_EQ(count(one, "<table class=\"compared\">"), 0u);
  EXPECT_EQ(count(three, "<table class=\"compared\">"), 4u);  // what differs, results, machine, settings
  EXPECT_NE(three.find("table.compared { table-layout: fixed; }"), std::string::npos);
  EXPECT_NE(three.find(
                ".compared td.number, .compared th.number { white-space: normal; overflow-wrap: anywhere; }"),
            std::string::npos);
  EXPECT_NE(three.find("<h2>What differs</h2>"), std::string::npos);
  EXPECT_NE(three.find("<h2>Results</h2>"), std::string::npos);
}

TEST(PageReport, CardsFillTheirRows) {
  auto run = example_run();
  const auto cards = [&] {
    const std::string html = page({{"a", run}});
    const std::size_t at = html.find("style=\"--row:");
    return std::pair(count(html, "<div class=\"tile\">"), html.substr(at + 13, 1));
  };
  EXPECT_EQ(cards(), (std::pair<std::size_t, std::string>(5, "5")));
  run.end->goodput = {.tokens_per_second = 12'800, .seconds = 80, .start_up = 8, .steps = 66, .saves = 6};
  run.validations.push_back({250, 1, 2, {}, 1, 1, "ff", true, 1});
  EXPECT_EQ(cards(), (std::pair<std::size_t, std::string>(7, "4")));  // four and three, none by itself
  for (Step& step : run.steps) step.mfu = 0.5, step.hfu = 0.6;
  EXPECT_EQ(cards(), (std::pair<std::size_t, std::string>(9, "5")));
}

TEST(PageReport, ColoursOfOneDrawingAreApart) {
  auto run = example_run();
  for (Step& step : run.steps) step.phases.backward = 0.5;
  const std::string html = page({{"a", run}, {"b", run}});
  EXPECT_NE(html.find("<span class=\"key c0\"></span>forward</li>"), std::string::npos);
  EXPECT_NE(html.find("<span class=\"key c1\"></span>backward</li>"), std::string::npos);
  // A run's validations have its colour, with dots.
  run.validations.push_back({250, 1, 2, {}, 1, 1, "ff", true, 1});
  const std::string compared = page({{"a", run}, {"b", run}});
  EXPECT_NE(compared.find("<span class=\"key c1\"></span>b</li>"), std::string::npos);
  EXPECT_NE(compared.find("<span class=\"key mark c1\"></span>b, validation</li>"), std::string::npos);
}

TEST(PageReport, OnACpuItIsSaidWhatThePlanAndThePeakAreOf) {
  auto run = example_run();
  run.start.planned_memory_bytes = 20 << 20;
  const auto said = [&](const std::string& text) {
    return page({{"a", run}}).find(text) != std::string::npos;
  };
  EXPECT_TRUE(
      said("20.0 MiB, the tensors of a step; on a CPU they are not measured apart: the peak is of the whole "
           "process"));
  EXPECT_TRUE(said("381 MiB of the process"));
  EXPECT_TRUE(said("MiB, of the whole process"));
  run.start.gpus = {{.name = "NVIDIA H200", .uuid = "u", .memory_bytes = 1}};
  EXPECT_FALSE(said("not measured apart"));
  EXPECT_FALSE(said("of the process"));
}

TEST(PageReport, ARunWithoutStepsOrEndStillGivesAPage) {
  const std::string html = page({{"a", assemble({tests::example_start()})}});
  EXPECT_NE(html.find("no end recorded"), std::string::npos);
  EXPECT_NE(html.find("no finite values"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(PageReport, AReportIsWrittenBesideItsRecordAndAComparisonInTheCurrentFolder) {
  const tests::Scratch scratch;
  const fs::path& folder = scratch.path();
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder / name);
    std::ofstream(folder / name / "run.jsonl") << to_json(tests::example_start()) << "\n";
  }
  const std::string a = (folder / "a").string(), b = (folder / "b" / "run.jsonl").string();
  EXPECT_EQ(write_report({a + "/"}, "").file, folder / "a" / "report.html");
  EXPECT_EQ(write_report({b}, "").file, folder / "b" / "report.html");
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  EXPECT_EQ(write_report({a, b}, "").file, "compare.html");
  EXPECT_EQ(write_report({a, b}, "", "", Form::csv).file, "compare.csv");
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(folder / "compare.csv"));
  EXPECT_EQ(write_report({a}, (folder / "c.html").string()).file, folder / "c.html");
  const Written given_back = write_report({a}, "-");
  EXPECT_EQ(given_back.file, "-");
  EXPECT_FALSE(fs::exists("-"));
  const auto text = [](const fs::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_NE(text(folder / "compare.html").find(">b</th>"), std::string::npos);
  EXPECT_EQ(text(folder / "a" / "report.html").find(">b</th>"), std::string::npos) << "a's own page stays";
  EXPECT_THROW(write_report({a}, (folder / "no" / "c.html").string()), UserError);
}

TEST(PageReport, HfuStandsBesideMfu) {
  auto run = example_run();
  EXPECT_EQ(page({{"a", run}}).find("HFU"), std::string::npos) << "it is not known";
  for (Step& step : run.steps) step.mfu = 0.41, step.hfu = 0.52;
  const std::string one = page({{"a", run}}), two = page({{"a", run}, {"b", example_run()}});
  EXPECT_NE(one.find("<b>52.0 %</b><span>HFU"), std::string::npos);
  EXPECT_NE(one.find("Hardware FLOP utilisation"), std::string::npos);
  EXPECT_NE(two.find("<th scope=\"row\">HFU</th><td class=\"number\">52.0 %</td><td class=\"number\">–</td>"),
            std::string::npos);
}

/// A record in a folder of its own, and its report.
class RecordReport : public testing::Test {
 protected:
  Written report(const std::vector<Event>& events) {
    std::ofstream out(scratch.path() / "run.jsonl");
    for (const Event& event : events) out << to_json(event) << "\n";
    out.close();
    return write_report({scratch.path().string()}, "");
  }
  std::string html() const {
    std::ifstream in(scratch.path() / "report.html");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<Event> steps(std::int64_t first, std::int64_t last, std::vector<Event> before) const {
    for (std::int64_t step = first; step <= last; ++step) before.push_back(tests::example_step(step));
    return before;
  }

  tests::Scratch scratch;
};

TEST_F(RecordReport, ARecordOfOneRunHasNoWarning) {
  auto events = steps(1, 6, {tests::example_start()});
  events.push_back(tests::example_start());
  events.push_back(ResumeFrom{.step = 4, .path = "a"});
  EXPECT_TRUE(report(steps(5, 9, events)).faults.empty());
  EXPECT_EQ(html().find("class=\"warning\" role=\"note\"><b>"), std::string::npos);
}

TEST_F(RecordReport, ARecordThatJumpsOrMixesRunsIsReportedOnThePageAndInTheResult) {
  const auto first = steps(1, 6, {tests::example_start()});
  auto mixed = first;
  mixed.push_back(tests::example_start());
  for (const auto& [events, words] : std::vector<std::pair<std::vector<Event>, std::string>>{
           {steps(9, 12, first), "steps 7 to 8 are missing"},
           {steps(3, 8, first), "step 3 follows step 6 without a resume"},
           {steps(1, 4, mixed), "two runs stand in one record"}}) {
    const Written written = report(events);
    ASSERT_EQ(written.faults.size(), 1u) << words;
    EXPECT_NE(written.faults[0].find(words), std::string::npos) << written.faults[0];
    EXPECT_NE(html().find(words), std::string::npos);
  }
}

TEST_F(RecordReport, ALossThatDoesNotGoOnAfterAResumeIsReported) {
  auto events = std::vector<Event>{tests::example_start()};
  for (std::int64_t step = 1; step <= 12; ++step) {  // enough to know how the loss scatters
    Step each = tests::example_step(step);
    each.loss = step % 2 ? 1.0 : 1.02;
    events.push_back(each);
  }
  events.push_back(tests::example_start());
  events.push_back(ResumeFrom{.step = 10, .path = "a"});
  const Written written = report(steps(11, 15, events));  // their loss is 5.5
  ASSERT_EQ(written.faults.size(), 1u);
  EXPECT_NE(written.faults[0].find("loss from step 11 on"), std::string::npos) << written.faults[0];
}

}  // namespace
}  // namespace assay::impl::report::page_test
