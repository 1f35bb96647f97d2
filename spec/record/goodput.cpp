#include "spec/record/goodput.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "spec/text/quantity.hpp"

namespace assay::spec::record {
namespace {

struct DoneStep {
  std::int64_t step = 0;
  double seconds = 0, data_wait = 0, saves = 0;  ///< `seconds`: without the others
  bool skipped = false, redone = false;
};

struct OneStart {
  std::vector<DoneStep> steps;
  std::optional<Goodput> goodput;
};

struct Starts {
  std::vector<OneStart> all;

  void redo_from(std::int64_t first) {
    for (OneStart& start : all)
      for (DoneStep& each : start.steps) each.redone = each.redone || each.step >= first;
  }
  void add(const DoneStep& step) {
    redo_from(step.step);
    all.back().steps.push_back(step);
  }

  void operator()(const RunStart&) { all.emplace_back(); }
  void operator()(const ResumeFrom& resume) { redo_from(resume.step + 1); }
  void operator()(const Step& step) {
    const double wait = step.phases.data_wait, saves = step.phases.checkpoint;
    add({.step = step.step, .seconds = step.seconds - wait - saves, .data_wait = wait, .saves = saves});
  }
  void operator()(const SkippedStep& step) {
    add({.step = step.step, .seconds = step.seconds, .skipped = true});
  }
  void operator()(const RunEnd& end) { all.back().goodput = end.goodput; }
  template <class Other>
  void operator()(const Other&) {}
};

}  // namespace

RunGoodput run_goodput(const std::vector<Event>& events) {
  Starts starts;
  for (const Event& event : events) std::visit(starts, event);
  RunGoodput sum;
  for (const OneStart& start : starts.all) {
    double skipped = 0, redone = 0, productive = 0, data_wait = 0, saves = 0;
    for (const DoneStep& each : start.steps) {
      (each.redone ? redone : each.skipped ? skipped : productive) += each.seconds;
      data_wait += each.data_wait, saves += each.saves;
    }
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
