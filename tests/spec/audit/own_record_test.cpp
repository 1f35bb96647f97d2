// labels: unit
// What our own record says twice has to agree: its end with its steps, its plan, its vocabulary.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "spec/audit/compare_runs.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/flops/exact.hpp"
#include "spec/record/chain.hpp"
#include "spec/record/run.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::audit::own_record_test {
namespace {

struct Events {
  record::RunStart start = tests::example_start();
  std::vector<record::Step> steps;
  record::RunEnd end;

  Events() {
    start.steps = 3;
    double sum = 0;
    for (int i = 1; i <= 3; ++i) {
      steps.push_back(tests::example_step(i));
      steps.back().loss = 5 - 0.25 * i;
      sum += steps.back().loss;
    }
    end.steps = 3;
    end.tokens = 3 * steps[0].tokens;
    end.seconds = 3 * steps[0].seconds;
    end.final_loss = sum / 3;
    end.final_steps = 3;
    if (start.data.floor)
      end.gap_closed = record::gap_closed(*end.final_loss, *start.data.floor, start.vocab);
  }
  RunRecord read() const {
    std::string text = record::to_json(start) + "\n";
    for (const record::Step& step : steps) text += record::to_json(step) + "\n";
    std::istringstream in(text + record::to_json(end) + "\n");
    return read_log(in, "run.jsonl");
  }
  Verdict judged(std::string_view id) const { return judge(id, read()).verdict; }
};

TEST(OwnRecordSpec, ATruthfulRecordHolds) {
  const Events events;
  for (const char* id : {"final", "planned_steps", "valid_tokens"})
    EXPECT_EQ(events.judged(id), Verdict::holds) << id;
}

TEST(OwnRecordSpec, SeveralStartsOfARunAreNoRivals) {
  Events events;
  events.start.steps = 3, events.start.gpus.clear();
  events.start.ranks = {{.rank = 0, .host = "a", .device = "cpu"}};
  std::string text = record::to_json(events.start) + "\n";
  for (const record::Step& step : events.steps) text += record::to_json(step) + "\n";
  text += record::to_json(events.end) + "\n";
  const std::string once = text;
  events.start.steps = 6;
  text += record::to_json(events.start) + "\n";
  text += record::to_json(record::ResumeFrom{.step = 3, .path = "p"}) + "\n";
  for (std::int64_t step = 4; step <= 6; ++step) {
    record::Step later = tests::example_step(step);
    later.seconds /= 2, later.tokens_per_second *= 2;
    text += record::to_json(later) + "\n";
  }
  std::istringstream in(text), first(once), second(text);
  const std::vector<RunRecord> longer = read_logs(in, "run.jsonl");
  ASSERT_EQ(longer.size(), 2u) << "each start is judged by its own settings";
  EXPECT_EQ(longer[0].origin, "run.jsonl (from start 1)");
  EXPECT_EQ(longer[1].origin, "run.jsonl (from start 2)");
  EXPECT_TRUE(audit(longer).differences.empty());
  // Beside another run there is one comparison, of CPUs.
  std::vector<RunRecord> both = read_logs(first, "other");
  for (RunRecord& record : read_logs(second, "run.jsonl")) both.push_back(std::move(record));
  const Together together = audit(both);
  ASSERT_EQ(together.differences.size(), 1u);
  EXPECT_NE(together.differences[0].verdict.find("per rank"), std::string::npos)
      << together.differences[0].verdict;
}

/// A resume behind the last step is of the same run, whatever settings changed: the steps between are
/// missing.
TEST(OwnRecordSpec, StepsThatAResumeIsBehindAreMissing) {
  Events events;
  const auto read = [&](std::int64_t behind, std::int64_t steps, bool skipped) {
    std::string text = record::to_json(events.start) + "\n";
    for (const record::Step& step : events.steps) text += record::to_json(step) + "\n";
    record::SkippedStep skip;
    skip.step = 4;
    if (skipped) text += record::to_json(skip) + "\n";
    record::RunStart again = events.start;
    again.steps = steps;
    text += record::to_json(again) + "\n" + record::to_json(record::ResumeFrom{.step = behind, .path = "p"}) +
            "\n";
    for (int i = 1; i <= 3; ++i)
      text += record::to_json(tests::example_step(static_cast<int>(behind) + i)) + "\n";
    std::istringstream in(text);
    return read_logs(in, "run.jsonl");
  };
  for (const std::int64_t plan : {3, 14}) {
    const auto starts = read(12, plan, false);
    const Result lost = judge("steps", starts.front());
    EXPECT_EQ(lost.verdict, Verdict::contradicts) << plan;
    EXPECT_EQ(lost.note, "steps 4 to 12 are missing: the run was resumed after step 12");
    for (const RunRecord& start : starts)
      EXPECT_EQ(start.origin.find("run 2"), std::string::npos) << start.origin;
    EXPECT_EQ(judge("steps", read(3, plan, false).front()).verdict, Verdict::holds) << plan;
    EXPECT_EQ(judge("steps", read(4, plan, true).front()).verdict, Verdict::holds) << "it was skipped";
  }
}

TEST(OwnRecordSpec, APlaceThatACheckpointStatesMustBeThere) {
  const Events events;
  record::Chain chain;
  std::string text, hash;
  for (const record::Event& event : {record::Event(events.start), record::Event(events.steps[0])})
    text += chain.line_of(record::to_json(event)) + "\n", hash = chain.hash();
  for (const bool there : {true, false}) {
    std::istringstream in(text);
    ReadOptions options;
    options.places = {{.hash = there ? hash : "0123456789abcdef", .by = "step_00000001"}};
    const Result chained = judge("chain", read_log(in, "run.jsonl", options));
    EXPECT_EQ(chained.verdict, there ? Verdict::holds : Verdict::contradicts);
    if (there) continue;
    ASSERT_EQ(chained.causes.size(), 1u);
    EXPECT_EQ(chained.causes[0].text,
              "the line that step_00000001 was saved behind is missing: lines were cut out");
    EXPECT_EQ(chained.lines, std::vector<std::int64_t>{2});
  }
}

TEST(OwnRecordSpec, StepsInsideARampHaveTheTokensOfTheirStage) {
  Events events;
  events.start.batch.sequences = 32, events.start.batch.sequence_length = 128;
  const auto ramp_of = [&](const std::vector<std::string>& stages) {
    std::erase_if(events.start.settings, [](const auto& setting) { return setting.first == "batch.ramp"; });
    events.start.settings.emplace_back("batch.ramp", stages);
  };
  const auto tokens_of = [&](std::size_t step, std::int64_t tokens) {
    events.steps[step].tokens = tokens;
    events.steps[step].tokens_per_second = static_cast<double>(tokens) / events.steps[step].seconds;
  };
  ramp_of({"8:1", "16:1"});
  tokens_of(0, 8 * 128), tokens_of(1, 16 * 128), tokens_of(2, 32 * 128);
  EXPECT_EQ(events.judged("step_tokens"), Verdict::holds);
  ramp_of({"8:1", "24:1"});
  EXPECT_EQ(events.judged("step_tokens"), Verdict::contradicts);
  ramp_of({"8:1", "16:1"});
  tokens_of(1, 20 * 128);
  EXPECT_EQ(events.judged("step_tokens"), Verdict::contradicts) << "its own rate agrees with it";
}

TEST(OwnRecordSpec, TensorRanksHaveGpusOfTheirOwn) {
  Events events;
  events.start.tensor_ranks = 2;  // of each of the 2 data-parallel ranks
  events.start.gpus.assign(4, {.name = "NVIDIA H200", .uuid = "GPU-1", .memory_bytes = 150'000'000'000});
  EXPECT_EQ(events.judged("ranks"), Verdict::holds);
  events.start.gpus.resize(2);
  EXPECT_EQ(events.judged("ranks"), Verdict::contradicts);
}

TEST(OwnRecordSpec, StepsThatWereNotDoneContradict) {
  Events events;
  events.end.steps = 300;
  EXPECT_EQ(events.judged("final"), Verdict::contradicts);
  EXPECT_EQ(events.judged("planned_steps"), Verdict::contradicts);
}

TEST(OwnRecordSpec, ARunThatIsDoneDidWhatWasPlanned) {
  Events events;
  events.start.steps = 2;
  EXPECT_EQ(events.judged("planned_steps"), Verdict::contradicts);
  events.start.steps = 400;
  EXPECT_EQ(events.judged("planned_steps"), Verdict::contradicts);
  events.end.reason = record::EndReason::saved;
  EXPECT_NE(events.judged("planned_steps"), Verdict::contradicts);
}

TEST(OwnRecordSpec, TheFinalLossIsTheMeanOfAsManyStepsAsItSays) {
  Events events;
  events.end.final_loss = events.steps.back().loss;
  EXPECT_EQ(events.judged("final"), Verdict::contradicts);
  events.end.final_steps = 1;
  EXPECT_EQ(events.judged("final"), Verdict::holds);
}

TEST(OwnRecordSpec, TheGapIsThatOfTheFinalLoss) {
  Events events;
  events.start.data.floor = 0.5;
  events.end.gap_closed = record::gap_closed(*events.end.final_loss, 0.5, events.start.vocab);
  EXPECT_EQ(events.judged("gap_closed"), Verdict::holds);
  *events.end.gap_closed += 0.01;
  EXPECT_EQ(events.judged("gap_closed"), Verdict::contradicts);
}

TEST(OwnRecordSpec, NoMoreTokensCountThanThereAre) {
  Events events;
  events.steps[1].valid_tokens = events.steps[1].tokens / 2;
  EXPECT_EQ(events.judged("valid_tokens"), Verdict::holds);
  events.steps[1].valid_tokens = events.steps[1].tokens + 1;
  EXPECT_EQ(events.judged("valid_tokens"), Verdict::contradicts);
}

TEST(OwnRecordSpec, TheVocabularyIsTheNamedModels) {
  Events events;
  events.start.model = "tiny-llama";
  events.start.vocab = 256;
  EXPECT_EQ(events.judged("vocabulary"), Verdict::holds);
  events.start.vocab = 50257;
  EXPECT_EQ(events.judged("vocabulary"), Verdict::contradicts);
}

/// A model of the user's own file, which bears the name of a built-in one.
Events of_own_model() {
  Events events;
  ModelSpec model = find_model("tiny-llama");
  model.vocab = 512;
  model.layers += 1;
  events.start.model_definition = to_toml(model);
  events.start.settings.emplace_back("model.name", std::string("/home/me/tiny.toml"));
  events.start.model = model.name;
  events.start.vocab = model.vocab;
  events.start.parameters = parameter_count(model).to_int64();
  events.start.flops_per_token = exact_flops_per_token(model, events.start.batch.sequence_length).to_int64();
  return events;
}

TEST(OwnRecordSpec, AModelIsWhatTheRecordDefines) {
  const Events truthful = of_own_model();
  for (const char* id : {"parameters", "flops_per_token", "vocabulary"})
    EXPECT_EQ(truthful.judged(id), Verdict::holds) << id;
  Events other = truthful;
  other.start.parameters += 1;
  EXPECT_EQ(other.judged("parameters"), Verdict::contradicts);
  other = truthful;
  other.start.flops_per_token += 6;
  EXPECT_EQ(other.judged("flops_per_token"), Verdict::contradicts);
  other = truthful;
  other.start.vocab = 256;
  EXPECT_EQ(other.judged("vocabulary"), Verdict::contradicts);
}

TEST(OwnRecordSpec, AModelOfAFileThatTheRecordLacksIsNotTheBuiltInOne) {
  Events events = of_own_model();
  events.start.model_definition.reset();
  for (const char* id : {"parameters", "flops_per_token", "vocabulary"})
    EXPECT_EQ(events.judged(id), Verdict::cannot_be_judged) << id;
  // The command line may say which it was.
  RunRecord record = events.read();
  record.state("model", &RunRecord::model, "tiny-llama", "--model tiny-llama");
  EXPECT_EQ(judge("parameters", record).verdict, Verdict::contradicts);
}

TEST(OwnRecordSpec, ADefinitionOfNoModelIsQuotedAndNotJudged) {
  Events events = of_own_model();
  for (const char* none : {"name = ", "name = \"a\"", ""}) {
    events.start.model_definition = none;
    const RunRecord record = events.read();
    EXPECT_EQ(record.unread_lines, 1) << none;
    EXPECT_TRUE(record[Setting::parameters]) << none;
  }
}

TEST(OwnRecordSpec, TheModelOfALogIsNoFileOfThisMachine) {
  RunRecord record;
  record.model = tests::source_dir() + "/spec/models/tiny-llama.toml";
  record[Setting::parameters] = exactly(1);
  EXPECT_EQ(judge("parameters", record).verdict, Verdict::cannot_be_judged);
  record.state("model", &RunRecord::model, record.model, "--model FILE");
  EXPECT_EQ(judge("parameters", record).verdict, Verdict::contradicts);
}

TEST(OwnRecordSpec, TheTimesOfItsPartsAddUpToAStep) {
  Events events;
  events.steps[1].phases = {.data_wait = 0.0125, .forward = 0.0875, .backward = 0.1, .other = 0.05};
  EXPECT_EQ(events.judged("phases"), Verdict::holds);
  events.steps[1].phases.backward = 0.1 + 1e-9;
  EXPECT_EQ(events.judged("phases"), Verdict::contradicts);
}

/// 100 steps on a machine that others use: most of them wait, a few do not.
Events on_a_busy_machine() {
  Events events;
  events.steps.clear();
  events.start.steps = 100;
  for (int i = 1; i <= 100; ++i) {
    record::Step step = tests::example_step(i);
    step.seconds = i % 20 == 0 ? 0.05 : 0.25 + 0.001 * (i % 7);
    step.tokens_per_second = static_cast<double>(step.tokens) / step.seconds;
    step.phases = {.forward = step.seconds};
    events.steps.push_back(step);
  }
  return events;
}

TEST(OwnRecordSpec, AStepWhosePartsWereAsFastIsNoMistake) {
  const Events busy = on_a_busy_machine();
  EXPECT_EQ(busy.judged("rate_steady"), Verdict::holds);
  Events jump = busy;
  jump.steps[19].phases.forward = 0.25;
  EXPECT_EQ(jump.judged("rate_steady"), Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::own_record_test
