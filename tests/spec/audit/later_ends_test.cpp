// labels: unit
// A record to which resumed runs append has an end of each start: all of them are held to their steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "spec/audit/invariants.hpp"
#include "spec/error.hpp"
#include "spec/record/run.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::later_ends_test {
namespace {

/// Steps `first` to `last`, and the end that they come to.
struct Start {
  record::RunStart start = tests::example_start();
  std::vector<record::Step> steps;
  record::RunEnd end;

  Start(std::int64_t first, std::int64_t last) {
    start.data.floor = 0.5;
    for (std::int64_t number = first; number <= last; ++number) {
      record::Step step = tests::example_step(number);
      step.loss = 5 - 0.1 * static_cast<double>(number);
      step.seconds = 0.25 + 0.001 * static_cast<double>(number % 3);
      steps.push_back(step);
      end.tokens += step.tokens;
      end.seconds += step.seconds;
    }
    end.steps = last - first + 1;
    end.tokens_per_second = static_cast<double>(end.tokens) / end.seconds;
    end.final_steps = std::min<std::int64_t>(record::final_loss_steps, end.steps);
    end.final_loss = record::mean_loss(steps, record::final_loss_steps);
    end.floor = start.data.floor;
    end.gap_closed = record::gap_closed(*end.final_loss, *end.floor, start.vocab);
  }
};

/// A run that was stopped at step 12, went on to step 24, and was given more steps.
struct ThreeStarts {
  Start first{1, 12}, second{13, 24}, third{25, 27};
  std::string damaged_line, behind_second;  ///< of the second

  Result judged() const {
    std::string text;
    for (const Start* each : {&first, &second, &third}) {
      text += record::to_json(each->start) + "\n";
      const std::int64_t from = each->steps.front().step - 1;
      if (from > 0) text += record::to_json(record::ResumeFrom{from, "checkpoints"}) + "\n";
      for (const record::Step& step : each->steps) text += record::to_json(step) + "\n";
      if (each == &second) text += damaged_line;
      text += record::to_json(each->end) + "\n";
      if (each == &second) text += behind_second;
    }
    return judge("later_ends", tests::read_text(text));
  }
};

TEST(LaterEndsSpec, TruthfulEndsHold) {
  const Result result = ThreeStarts().judged();
  EXPECT_EQ(result.verdict, Verdict::holds) << result.note;
  EXPECT_EQ(result.judged, 2);
}

TEST(LaterEndsSpec, EveryNumberOfEveryLaterEndIsHeldToItsSteps) {
  const std::function<void(record::RunEnd&)> changes[] = {
      [](record::RunEnd& end) { end.steps += 1; },
      [](record::RunEnd& end) { end.tokens += 4096; },
      [](record::RunEnd& end) { end.seconds *= 1 + 1e-9; },
      [](record::RunEnd& end) { end.tokens_per_second *= 1 + 1e-9; },
      [](record::RunEnd& end) { *end.final_loss += 1e-9, end.gap_closed.reset(); },
      [](record::RunEnd& end) { *end.gap_closed += 1e-9; }};
  int number = 0;
  for (const auto& change : changes) {
    for (Start ThreeStarts::*which : {&ThreeStarts::second, &ThreeStarts::third}) {
      ThreeStarts run;
      change((run.*which).end);
      const Result result = run.judged();
      ASSERT_EQ(result.verdict, Verdict::contradicts) << number;
      EXPECT_EQ(result.causes.at(0).id, "later_end_other");
    }
    ++number;
  }
}

TEST(LaterEndsSpec, AnEndOfTheWholeRunIsNotALaterStarts) {
  ThreeStarts run;
  run.second.end.steps = 24;
  EXPECT_EQ(run.judged().verdict, Verdict::contradicts);
}

TEST(LaterEndsSpec, TheEndOfALostRankIsHeldToItselfAlone) {
  ThreeStarts run;
  run.second.end.exit_code = static_cast<std::int64_t>(ExitCode::peer_lost);
  run.second.end.reason = record::EndReason::error;
  run.second.end.steps += 1;
  EXPECT_EQ(run.judged().verdict, Verdict::holds);
  run.second.end.tokens_per_second *= 2;
  EXPECT_EQ(run.judged().verdict, Verdict::contradicts);
}

TEST(LaterEndsSpec, AnEndBehindALineThatCannotBeReadIsHeldToItselfAlone) {
  ThreeStarts run;
  run.second.steps.erase(run.second.steps.begin() + 3);
  EXPECT_EQ(run.judged().verdict, Verdict::contradicts);
  run.damaged_line = "{\"event\":\"step\",\"step\":16,\"lo\n";
  EXPECT_EQ(run.judged().verdict, Verdict::holds);
}

TEST(LaterEndsSpec, OfTwoEndsOfOneStartTheLaterCounts) {
  ThreeStarts run;
  const record::RunEnd right = run.second.end;
  run.second.end.steps += 1;
  run.behind_second = record::to_json(right) + "\n";
  EXPECT_EQ(run.judged().verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::later_ends_test
