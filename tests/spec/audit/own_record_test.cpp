// labels: unit
// What our own record says twice has to agree: its end with its steps, its plan, its vocabulary.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/record/run.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"

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
  Verdict judged(std::string_view id) const {
    std::string text = record::to_json(start) + "\n";
    for (const record::Step& step : steps) text += record::to_json(step) + "\n";
    std::istringstream in(text + record::to_json(end) + "\n");
    return judge(id, read_log(in, "run.jsonl")).verdict;
  }
};

TEST(OwnRecordSpec, ATruthfulRecordHolds) {
  const Events events;
  for (const char* id : {"final", "planned_steps", "valid_tokens"})
    EXPECT_EQ(events.judged(id), Verdict::holds) << id;
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

}  // namespace
}  // namespace assay::spec::audit::own_record_test
