// labels: unit
// Our own record states its schedule whole: each rate is one number.
#include <gtest/gtest.h>

#include <initializer_list>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/batch/schedule.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"

namespace assay::spec::audit::own_schedule_test {
namespace {

struct Events {
  record::RunStart start = tests::example_start();
  std::vector<record::Step> steps;

  RunRecord read() const {
    std::string text = record::to_json(start) + "\n";
    for (const record::Step& step : steps) text += record::to_json(step) + "\n";
    std::istringstream in(text);
    return read_log(in, "run.jsonl");
  }
};

/// A run of ten steps at the rates of its own schedule, each times `factor` from step `from` on.
Events scheduled(const Schedule& schedule, double factor = 1, std::int64_t from = 1) {
  Events events;
  events.start.steps = schedule.steps;
  const bool wsd = schedule.kind == ScheduleKind::wsd, linear = schedule.decay_shape == DecayShape::linear;
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, Value>>{
           {"optimizer.learning_rate", schedule.peak},
           {"schedule.kind", std::string(wsd                                     ? "wsd"
                                         : schedule.kind == ScheduleKind::cosine ? "cosine"
                                                                                 : "constant")},
           {"schedule.warmup_steps", schedule.warmup_steps},
           {"schedule.decay_steps", schedule.decay_steps},
           {"schedule.decay_shape", std::string(linear ? "linear" : "1-sqrt")},
           {"schedule.final_ratio", schedule.final_ratio}})
    events.start.settings.emplace_back(key, value);
  for (std::int64_t i = 1; i <= schedule.steps; ++i) {
    events.steps.push_back(tests::example_step(i));
    events.steps.back().learning_rate = learning_rate(schedule, i - 1) * (i < from ? 1 : factor);
  }
  return events;
}

TEST(OwnScheduleSpec, EachRateIsThatOfTheStatedSchedule) {
  for (const ScheduleKind kind : {ScheduleKind::wsd, ScheduleKind::cosine, ScheduleKind::constant})
    for (const std::int64_t rise : {0, 1, 4})
      for (const std::int64_t decay : {0, 1, 3, 6})
        for (const DecayShape shape : {DecayShape::linear, DecayShape::one_minus_sqrt}) {
          const Schedule schedule{kind, 3e-3, 10, rise, decay, 0.1, shape};
          const Result honest = judge("learning_rate", scheduled(schedule).read());
          EXPECT_EQ(honest.verdict, Verdict::holds);
          EXPECT_EQ(honest.judged, 10);
          EXPECT_EQ(honest.recomputed.low, honest.recomputed.high);
          for (const double factor : {0.5, 0.9}) {
            const Result all = judge("learning_rate", scheduled(schedule, factor).read());
            EXPECT_EQ(all.contradicted, 10) << factor;
            EXPECT_EQ(all.note.find("every other"), std::string::npos) << all.note;
            EXPECT_EQ(judge("learning_rate", scheduled(schedule, factor, 6).read()).contradicted, 5);
          }
        }
}

TEST(OwnScheduleSpec, TheFallIsOfTheStatedShapeAndNoStepLater) {
  const Schedule schedule{ScheduleKind::wsd, 3e-3, 10, 0, 6, 0.1, DecayShape::linear};
  Schedule other = schedule;
  other.decay_shape = DecayShape::one_minus_sqrt;
  const Events honest = scheduled(schedule), bent = scheduled(other);
  Events events = honest;
  for (std::size_t i = 0; i < 10; ++i) events.steps[i].learning_rate = bent.steps[i].learning_rate;
  EXPECT_EQ(judge("learning_rate", events.read()).verdict, Verdict::contradicts);
  events = honest;
  for (std::size_t i = 1; i < 10; ++i) events.steps[i].learning_rate = honest.steps[i - 1].learning_rate;
  EXPECT_EQ(judge("learning_rate", events.read()).verdict, Verdict::contradicts);
}

TEST(OwnScheduleSpec, AFallOfUnknownShapeIsOfOneThatThereIs) {
  for (const DecayShape shape : {DecayShape::linear, DecayShape::one_minus_sqrt}) {
    Events events = scheduled({ScheduleKind::wsd, 3e-3, 10, 0, 3, 0.1, shape});
    std::erase_if(events.start.settings, [](const auto& one) { return one.first == "schedule.decay_shape"; });
    EXPECT_EQ(judge("learning_rate", events.read()).verdict, Verdict::holds);
    events.steps[7].learning_rate *= 0.9;
    EXPECT_EQ(judge("learning_rate", events.read()).verdict, Verdict::contradicts);
  }
}

/// Records of earlier versions did not say how long the fall is: its rates are held to a range.
TEST(OwnScheduleSpec, ARateAloneIsNotSaidToBeBesideScheduledOnesWhereTheyAreOfARange) {
  Events events = scheduled({ScheduleKind::wsd, 3e-3, 10, 0, 3, 0.1, DecayShape::linear});
  events.steps[4].learning_rate *= 1.3;
  const auto text = [&] { return judge("learning_rate", events.read()).causes.at(0).text; };
  EXPECT_NE(text().find("every other rate is as scheduled"), std::string::npos) << text();
  std::erase_if(events.start.settings,
                [](const auto& one) { return one.first.starts_with("schedule.decay"); });
  EXPECT_EQ(text().find("as scheduled"), std::string::npos) << text();
  EXPECT_NE(text().find("every other rate is in the range"), std::string::npos) << text();
}

}  // namespace
}  // namespace assay::spec::audit::own_schedule_test
