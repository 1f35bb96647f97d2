// labels: unit property
// A run that is read in a bounded memory is the one that all of its events put together give.
#include "spec/record/read_run.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <fstream>

#include "spec/error.hpp"
#include "spec/record/continuity.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::spec::record::read_run_test {
namespace {

std::string text_of(const std::vector<Event>& events) {
  Chain chain;
  std::string text;
  for (const Event& event : events) text += chain.line_of(to_json(event)) + "\n";
  return text;
}

ReadRun read(const std::string& text, Tolerance tolerance = {}) {
  const tests::Scratch scratch;
  scratch.write("run.jsonl", text);
  return read_run(scratch.path().string(), tolerance);
}
ReadRun read(const std::vector<Event>& events) { return read(text_of(events)); }

Step numbered(std::int64_t number) {
  Step step = tests::example_step(number);
  step.loss = 5 - 1e-5 * static_cast<double>(number) + 0.01 * static_cast<double>(number * 7919 % 100);
  step.seconds = 0.25 + 1e-3 * static_cast<double>(number % 3);
  step.mfu = 0.5;
  return step;
}

/// Starts and resumes anywhere, steps that are missing, done again or skipped, validations between.
std::vector<Event> drawn_events() {
  std::vector<Event> events = {tests::example_start()};
  std::int64_t next = 1;
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) switch (*rc::gen::inRange(0, 12)) {
      case 0: {
        const std::int64_t from = *rc::gen::inRange<std::int64_t>(0, next + 1);
        events.emplace_back(tests::example_start());
        events.emplace_back(ResumeFrom{.step = from, .path = "p"});
        next = from + 1;
        break;
      }
      case 1:
        next = *rc::gen::inRange<std::int64_t>(1, next + 3);
        break;
      case 2: {
        SkippedStep skipped;
        skipped.step = next++;
        events.emplace_back(skipped);
        break;
      }
      case 3: {
        Validation validation;
        validation.step = next - 1, validation.loss = i;
        events.emplace_back(validation);
        break;
      }
      default: {
        Step step = numbered(next++);
        step.loss = i;
        events.emplace_back(step);
      }
    }
  return events;
}

RC_GTEST_PROP(ReadRunSpec, IsTheRunThatItsEventsGive, ()) {
  const auto events = drawn_events();
  const record::Run run = assemble(events);
  const ReadRun found = read(events);
  RC_ASSERT(!found.run.thinned);
  RC_ASSERT(found.run.steps == run.steps);
  RC_ASSERT(found.run.skipped == run.skipped);
  RC_ASSERT(found.run.validations == run.validations);
  RC_ASSERT(found.run.resumes == run.resumes);
  RC_ASSERT(found.run.earlier_ends.size() == run.earlier_ends.size());
  RC_ASSERT(found.discontinuities == discontinuities(events));
  RC_ASSERT(found.around_resumes.empty() == run.resumes.empty());
}

/// 20,000 steps, of which those behind step 12,345 are done twice, each time with other spikes.
struct LongRun {
  static constexpr std::int64_t last = 20'000, resumed = 12'345, spike = 15'678, dip = 333;
  std::vector<Event> events = {tests::example_start()};
  LongRun() {
    for (std::int64_t i = 1; i <= 15'000; ++i) events.emplace_back(numbered(i));
    std::get<Step>(events.at(14'000)).loss = 999;  // done again
    std::get<Step>(events.at(dip)).gradient_norm = -7;
    events.emplace_back(tests::example_start());
    events.emplace_back(ResumeFrom{.step = resumed, .path = "p"});
    for (std::int64_t i = resumed + 1; i <= last; ++i) events.emplace_back(numbered(i));
    std::get<Step>(events.at(events.size() - (last - spike) - 1)).loss = 77;
  }
};

TEST(ReadRunSpec, OfALongRunSpikesEndsAndSumsStay) {
  const LongRun long_run;
  const record::Run whole = assemble(long_run.events);
  const record::Run run = read(long_run.events).run;
  ASSERT_TRUE(run.thinned);
  EXPECT_LT(run.steps.size(), 12'000u);
  const auto at = [&](std::int64_t number) {
    return std::lower_bound(run.steps.begin(), run.steps.end(), number,
                            [](const Step& step, std::int64_t n) { return step.step < n; });
  };
  EXPECT_EQ(at(LongRun::spike)->loss, 77);
  EXPECT_EQ(at(LongRun::dip)->gradient_norm, -7);
  EXPECT_TRUE(std::none_of(run.steps.begin(), run.steps.end(), [](const Step& s) { return s.loss == 999; }));
  EXPECT_EQ(run.steps.front().step, 1);
  EXPECT_EQ(mean_loss(run.steps, final_loss_steps), mean_loss(whole.steps, final_loss_steps));
  // What all of them come to.
  const StepSums sums = sums_of(run), expected = sums_of(whole);
  EXPECT_EQ(sums.count, LongRun::last);
  EXPECT_EQ(sums.tokens, expected.tokens);
  EXPECT_EQ(sums.seconds, expected.seconds);
  EXPECT_EQ(sums.mfu.count, expected.mfu.count);
  EXPECT_EQ(sums.phases, expected.phases);
  // Each step that was kept is one of the run, at its place.
  double tokens = 0, seconds = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    for (; whole.steps.at(next).step <= run.steps[i].step && next + 1 < whole.steps.size(); ++next) {
      tokens += static_cast<double>(whole.steps[next].tokens), seconds += whole.steps[next].seconds;
      if (whole.steps[next].step == run.steps[i].step) {
        ASSERT_EQ(whole.steps[next], run.steps[i]);
        ASSERT_EQ(run.thinned->so_far[i].tokens, tokens);
        ASSERT_EQ(run.thinned->so_far[i].seconds, seconds);
      }
    }
  }
  // Means of neighbours: as many in each, so that their mean is that of all.
  ASSERT_EQ(run.thinned->means.size(), static_cast<std::size_t>(StepThinner::buckets));
  double mean = 0, all = 0;
  for (const Step& each : run.thinned->means) mean += each.loss / StepThinner::buckets;
  for (const Step& each : whole.steps) all += each.loss / static_cast<double>(LongRun::last);
  EXPECT_NEAR(mean, all, 0.02 * all) << "ranges differ by one step";
}

/// Of each number that a step has, the least and the greatest of the run are among those that are drawn.
TEST(ReadRunSpec, NoExtremeOfAnyNumberIsLeftOut) {
  std::vector<Event> events = {tests::example_start()};
  const auto spread = [](Step& step, std::int64_t i) {
    step.phases.clip = 1 + static_cast<double>(i * 31 % 9973);
    step.sources = {
        {.name = "web", .tokens = 1, .valid_tokens = 1, .loss = static_cast<double>(i * 17 % 9967)}};
    step.resident_bytes = 5 + i * 13 % 9949;
  };
  for (std::int64_t i = 1; i <= 9000; ++i) {
    Step step = numbered(i);
    spread(step, i);
    events.emplace_back(step);
  }
  const record::Run run = read(events).run, whole = assemble(events);
  const auto extremes = [](const record::Run& of, auto number) {
    double least = INFINITY, greatest = -INFINITY;
    for (const Step& step : of.steps)
      least = std::min(least, number(step)), greatest = std::max(greatest, number(step));
    return std::pair(least, greatest);
  };
  for (const auto& number : std::initializer_list<double (*)(const Step&)>{
           [](const Step& s) { return s.loss; }, [](const Step& s) { return s.phases.clip; },
           [](const Step& s) { return s.sources->at(0).loss.value(); },
           [](const Step& s) { return static_cast<double>(s.resident_bytes); }})
    EXPECT_EQ(extremes(run, number), extremes(whole, number));
}

TEST(ReadRunSpec, OfARunThatWasResumedTheLinesAroundAreThere) {
  const LongRun long_run;
  std::istringstream lines(read(long_run.events).around_resumes);
  std::size_t starts = 0, before = 0, twice = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto number = step_in(line);
    if (!number) {
      ++starts;
      continue;
    }
    EXPECT_NEAR(static_cast<double>(*number), LongRun::resumed, 256);
    (*number <= LongRun::resumed ? before : twice) += 1;
  }
  EXPECT_EQ(starts, 3u) << "two starts and a resume";
  EXPECT_EQ(before, 257u);
  EXPECT_EQ(twice, 2 * 256u);
  EXPECT_EQ(read({tests::example_start(), numbered(1)}).around_resumes, "");
}

TEST(ReadRunSpec, WithoutHashesAStepThatCannotBeReadIsRefusedAndACutOneLeftOut) {
  const std::string start = to_json(tests::example_start()) + "\n", step = to_json(numbered(1));
  const std::string broken = "{\"event\":\"step\",\"step\":2,\"loss\":}";
  EXPECT_THROW(read(start + step + "\n" + broken + "\n"), UserError);
  EXPECT_EQ(read(start + step + "\n" + broken.substr(0, 28)).run.steps.size(), 1u);
  EXPECT_THROW(read(step + "\n"), UserError) << "no start";
  EXPECT_THROW(read(""), UserError);
}

TEST(ReadRunSpec, ADamagedStepIsNotedOnce) {
  std::string text = text_of({tests::example_start(), numbered(1), numbered(2), numbered(3)});
  text.replace(text.find("\"loss\"", text.find("\"step\":2")), 6, "'loss'");
  const tests::Scratch scratch;
  scratch.write("run.jsonl", text);
  Tolerance tolerance;
  const auto found = read_run((scratch.path() / "run.jsonl").string(), tolerance);
  EXPECT_EQ(found.run.steps.size(), 2u);
  EXPECT_EQ(tolerance.damage.count, 1);
}

}  // namespace
}  // namespace assay::spec::record::read_run_test
