#include "spec/record/goodput.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "spec/text/quantity.hpp"

namespace assay::spec::record {

void GoodputOfStarts::redo_from(std::int64_t first) {
  if (first > last_) return;
  for (Start& start : starts_)
    for (DoneStep& each : start.steps) each.redone = each.redone || each.step >= first;
  last_ = first - 1;
}

void GoodputOfStarts::add(const DoneStep& step) {
  redo_from(step.step);
  last_ = step.step;
  starts_.back().steps.push_back(step);
}

void GoodputOfStarts::add(const Event& event) {
  if (std::holds_alternative<RunStart>(event)) starts_.emplace_back();
  if (starts_.empty()) return;  // the first start is lost, with what its time came to
  if (const auto* resume = std::get_if<ResumeFrom>(&event)) redo_from(resume->step + 1);
  if (const auto* step = std::get_if<Step>(&event)) {
    const double wait = step->phases.data_wait, saves = step->phases.checkpoint;
    add({.step = step->step, .seconds = step->seconds - wait - saves, .data_wait = wait, .saves = saves});
  }
  if (const auto* step = std::get_if<SkippedStep>(&event))
    add({.step = step->step, .seconds = step->seconds, .skipped = true});
  if (const auto* end = std::get_if<RunEnd>(&event)) starts_.back().goodput = end->goodput;
}

void GoodputOfStarts::Times::add(const DoneStep& step) {
  (step.redone ? redone : step.skipped ? skipped : productive) += step.seconds;
  data_wait += step.data_wait, saves += step.saves;
}

void GoodputOfStarts::settle() {
  for (Start& start : starts_) {
    for (const DoneStep& each : start.steps) start.settled.add(each);
    start.steps.clear();
  }
}

RunGoodput GoodputOfStarts::sum() const {
  RunGoodput sum;
  for (const Start& start : starts_) {
    Times times = start.settled;
    for (const DoneStep& each : start.steps) times.add(each);
    auto& [skipped, redone, productive, data_wait, saves] = times;
    ++sum.starts;
    if (const auto& known = start.goodput) {
      // Clocks of steps and of the run are read at different moments.
      sum.redone += redone = std::min(redone, known->steps);
      sum.skipped += skipped = std::min(skipped, known->steps - redone);
      sum.productive += known->steps - redone - skipped;
      sum.seconds += known->seconds;
      sum.data_wait += known->data_wait, sum.start_up += known->start_up, sum.saves += known->saves;
      sum.evaluation += known->evaluation, sum.other += known->other;
    } else {
      ++sum.unended;
      sum.redone += redone, sum.skipped += skipped, sum.productive += productive;
      sum.data_wait += data_wait, sum.saves += saves;
      sum.seconds += redone + skipped + productive + data_wait + saves;
    }
  }
  return sum;
}

RunGoodput run_goodput(const std::vector<Event>& events) {
  GoodputOfStarts starts;
  for (const Event& event : events) starts.add(event);
  return starts.sum();
}

std::string goodput_text(const RunGoodput& goodput) {
  std::string text = percent(goodput.productive / goodput.seconds) + " of " + duration(goodput.seconds);
  if (goodput.starts > 1) text += " in " + grouped(goodput.starts) + " starts";
  text += " in productive steps";
  if (goodput.unended > 0)
    text += " (" + grouped(goodput.unended) + " left no end: their steps alone are counted)";
  std::vector<std::pair<double, const char*>> lost = {{goodput.start_up, "start-up"},
                                                      {goodput.saves, "checkpoints"},
                                                      {goodput.evaluation, "validation"},
                                                      {goodput.redone, "steps done again"},
                                                      {goodput.skipped, "skipped steps"},
                                                      {goodput.data_wait, "data wait"},
                                                      {goodput.other, "other"}};
  std::stable_sort(lost.begin(), lost.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr double shown_from = 0.0005;  // "0.1 %"
  std::string parts;
  for (const auto& [seconds, name] : lost)
    if (seconds >= shown_from * goodput.seconds)
      parts += (parts.empty() ? "; " : ", ") + (name + (" " + percent(seconds / goodput.seconds)));
  return text + parts;
}

}  // namespace assay::spec::record
