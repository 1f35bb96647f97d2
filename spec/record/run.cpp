#include "spec/record/run.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::record {

void Assembler::drop_from(std::int64_t first) {
  while (!run.steps.empty() && run.steps.back().step >= first) run.steps.pop_back();
  while (!run.skipped.empty() && run.skipped.back().step >= first) run.skipped.pop_back();
  // A validation follows its step, before the next one is done.
  while (!run.validations.empty() && run.validations.back().step >= first) run.validations.pop_back();
}

void Assembler::operator()(const RunStart& start) {
  if (std::exchange(started_, true)) run.earlier_ends.push_back(run.end);
  run.start = start;
  run.end.reset();
}
void Assembler::operator()(const Step& step) {
  drop_from(step.step);
  run.steps.push_back(step);
}
void Assembler::operator()(const SkippedStep& skipped) {
  drop_from(skipped.step);
  run.skipped.push_back(skipped);
}
void Assembler::operator()(const ResumeFrom& resume) {
  drop_from(resume.step + 1);
  run.resumes.push_back(resume);
}
void Assembler::operator()(const Validation& validation) {
  while (!run.validations.empty() && run.validations.back().step >= validation.step)
    run.validations.pop_back();
  run.validations.push_back(validation);
}

Run assemble(const std::vector<Event>& events) {
  Assembler assembler;
  for (const Event& event : events) assembler.add(event);
  return std::move(assembler.run);
}

StepSums sums_of(const Run& run) {
  if (run.thinned) return run.thinned->sums;
  StepSums sums;
  for (const Step& step : run.steps) sums.add(step);
  return sums;
}

GlobalBatch global_batch(const RunStart& start) {
  GlobalBatch batch{.sequences = start.batch.sequences};
  for (const auto& [key, value] : start.settings)
    if (const auto* stages = std::get_if<std::vector<std::string>>(&value); stages && key == "batch.ramp")
      for (const std::string& text : *stages) {
        const auto stage = ramp_stage(text);
        if (!stage)
          throw UserError(ExitCode::bad_data,
                          "batch.ramp holds " + quote(text) + ", which is no SEQUENCES:STEPS");
        batch.ramp.push_back(*stage);
      }
  return batch;
}

double gap_closed(double loss, double floor, std::int64_t vocab) {
  const double uniform = std::log(static_cast<double>(vocab));
  // record_c2
  require(floor < uniform, "record_c2", [&] {
    return "floor = " + std::to_string(floor) + " is not below log V = " + std::to_string(uniform);
  });
  return (uniform - loss) / (uniform - floor);
}

std::optional<Goodput> goodput(const Run& run) {
  Goodput sum;
  std::vector<std::optional<RunEnd>> ends = run.earlier_ends;
  ends.push_back(run.end);
  for (const std::optional<RunEnd>& end : ends) {
    if (!end || !end->goodput) return std::nullopt;
    const Goodput& each = *end->goodput;
    for (double Goodput::*part : {&Goodput::seconds, &Goodput::start_up, &Goodput::steps, &Goodput::data_wait,
                                  &Goodput::saves, &Goodput::evaluation, &Goodput::other})
      sum.*part += each.*part;
  }
  if (sum.seconds > 0) sum.tokens_per_second = static_cast<double>(sums_of(run).tokens) / sum.seconds;
  return sum;
}

std::string fractions(const Goodput& goodput) {
  std::string text;
  const std::pair<const char*, double> parts[] = {
      {"steps", goodput.steps},       {"data wait", goodput.data_wait},   {"saves", goodput.saves},
      {"start-up", goodput.start_up}, {"evaluation", goodput.evaluation}, {"other", goodput.other}};
  for (const auto& [name, seconds] : parts)
    if (seconds > 0) text += (text.empty() ? "" : ", ") + (name + (" " + percent(seconds / goodput.seconds)));
  return text;
}

std::optional<double> mean_loss(const std::vector<Step>& steps, std::int64_t count) {
  const auto wanted = std::min<std::int64_t>(count, static_cast<std::int64_t>(steps.size()));
  if (wanted <= 0) return std::nullopt;
  double sum = 0;
  for (auto step = steps.end() - wanted; step != steps.end(); ++step) sum += step->loss;
  return sum / static_cast<double>(wanted);
}

}  // namespace assay::spec::record
