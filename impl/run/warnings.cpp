#include "impl/run/warnings.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "impl/machine/numa.hpp"
#include "impl/run/trainer.hpp"
#include "spec/batch/schedule.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

using spec::record::Warning;

namespace {
/// Whether the run starts from weights that were trained before.
bool starts_trained(const spec::record::RunStart& start) {
  const auto named = std::find_if(start.settings.begin(), start.settings.end(),
                                  [](const auto& setting) { return setting.first == "model.weights"; });
  return named != start.settings.end() && named->second != spec::Value(std::string("none"));
}
}  // namespace

std::optional<std::string> options_text(const std::vector<std::string>& without_effect) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, without_effect.size()); ++i)
    text += (i ? ", " : "") + without_effect[i];
  if (without_effect.size() > most) text += " and " + std::to_string(without_effect.size() - most) + " more";
  return text.empty() ? std::nullopt : std::optional("config.json, without effect on training: " + text);
}

std::optional<Warning> first_loss_warning(double loss, const spec::record::RunStart& start) {
  const double uniform = std::log(static_cast<double>(start.vocab));
  if (starts_trained(start) && loss > uniform)
    return Warning{.step = 1,
                   .code = "first_loss",
                   .text = "the first loss is " + spec::fixed(loss, 4) +
                           ", and a uniform guess has log V = " + spec::fixed(uniform, 4) +
                           ": trained weights are better than that on text that they know; look at whether "
                           "the data are ids of this model's tokenizer, and whether targets are shifted by "
                           "one"};
  constexpr double most_deviations = 4;
  const auto& expected = start.expected_first_loss;
  if (!expected || !(expected->standard_deviation > 0)) return {};
  const double deviations = (loss - expected->mean) / expected->standard_deviation;
  if (std::abs(deviations) <= most_deviations) return {};
  return Warning{.step = 1,
                 .code = "first_loss",
                 .text = "the first loss is " + spec::fixed(loss, 4) + ", expected " +
                         spec::fixed(expected->mean, 4) + " +- " +
                         spec::fixed(expected->standard_deviation, 4) +
                         " for an untrained model: " + spec::fixed(deviations, 1) +
                         " standard deviations off; look at the initial weights (model.init_std), the "
                         "vocabulary, and whether targets are shifted by one"};
}

std::optional<Warning> memory_plan_warning(const spec::record::Memory& memory) {
  constexpr double most_off = 0.02;
  if (!memory.measured_bytes) return {};
  const double off =
      static_cast<double>(*memory.measured_bytes) / static_cast<double>(memory.planned_bytes) - 1;
  if (std::abs(off) <= most_off) return {};
  // A validation or sampling that takes more than a step has not come yet, nor have the largest loads of
  // expert ranks.
  const bool later =
      memory.load || memory.moment.starts_with("validation, ") || memory.moment.starts_with("sampling, ");
  if (later && off < 0) return {};
  return Warning{.step = memory.step,
                 .code = "memory_plan",
                 .text = "the first step took " + spec::percent(std::abs(off)) +
                         (off > 0 ? " more" : " less") +
                         " memory than planned: what the plan says of other micro-batches and settings of "
                         "memory.recompute is as far off"};
}

std::optional<Warning> above_peak_warning(const spec::record::Step& step,
                                          const spec::record::RunStart& start) {
  if (!start.peak_flops || (step.mfu && step.hfu)) return {};
  const double counted = static_cast<double>(step.tokens) * static_cast<double>(start.flops_per_token);
  return Warning{.step = step.step,
                 .code = "above_peak",
                 .text = spec::scientific(std::max(counted, step.executed_flops.value_or(0)), 3) +
                         " FLOPs in " + spec::scientific(step.seconds, 3) + " s are more than the peak of " +
                         spec::scientific(*start.peak_flops, 3) +
                         " FLOP/s allows, so MFU or HFU is left out; look at the clock and at which GPU the "
                         "peak is of"};
}

namespace {
bool is_far_from_gpu(const spec::record::RankPlacement& place) {
  if (!place.gpu_node || !place.processors || !place.gpu_processors) return false;
  const auto mine = numbers_of(*place.processors), near = numbers_of(*place.gpu_processors);
  return std::none_of(mine.begin(), mine.end(),
                      [&](std::int64_t n) { return std::binary_search(near.begin(), near.end(), n); });
}
}  // namespace

std::optional<Warning> numa_warning(const spec::record::RunStart& start) {
  const auto& ranks = start.ranks;
  const auto far = std::count_if(ranks.begin(), ranks.end(), is_far_from_gpu);
  if (far == 0) return {};
  const auto& first = *std::find_if(ranks.begin(), ranks.end(), is_far_from_gpu);
  const std::string node = std::to_string(*first.gpu_node);
  return Warning{
      .step = {},
      .code = "numa",
      .text = "rank " + std::to_string(first.rank) + " on " + first.host + " may run on processors " +
              *first.processors + " alone, none of which is of its GPU's NUMA node " + node + " (" +
              *first.gpu_processors + ")" +
              (far > 1 ? "; " + std::to_string(far) + " ranks are so" : std::string()) +
              ": launches and copies to the GPU cross the host; bind ranks by the launcher's option, "
              "or with numactl --cpunodebind=" +
              node + " --membind=" + node};
}

std::optional<Warning> record_waits_warning(std::size_t waiting, const std::string& path, int reason) {
  if (waiting == 0) return {};
  return Warning{.step = {},
                 .code = "record_waits",
                 .text = path + ": " + std::strerror(reason) +
                         "; the record is kept in memory and written once the disk takes it"};
}

Warning folder_warning(const std::string& before, const std::string& now, bool record_alone, bool whole) {
  const std::string what = record_alone ? "the record in " + before + " was removed or replaced"
                                        : before + " was removed, renamed, unmounted or replaced",
                    where = record_alone    ? "it is written anew"
                            : now == before ? "it is made anew, and the run is saved there"
                                            : "the run goes on, and is saved, in " + now;
  return {
      .step = {},
      .code = "folder_gone",
      .text = what + " while the run trained: " + where +
              (whole ? ", with the whole record"
                     : ", with the record from here on: what was written before cannot be read any more") +
              (record_alone ? "" : "; checkpoints that were in the other one stay with it")};
}

void NormHistory::add(double norm) {
  if (!(norm > 0) || !std::isfinite(norm)) return;
  const int bin = static_cast<int>(std::floor(per_octave * std::log2(norm))) + per_octave * octaves / 2;
  ++counts_[static_cast<std::size_t>(std::clamp(bin, 0, per_octave * octaves - 1))];
  ++count_;
}

std::optional<double> NormHistory::median() const {
  std::int64_t below = 0;
  for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
    below += counts_[bin];
    if (2 * below > count_)
      return std::exp2((static_cast<double>(bin) + 0.5 - per_octave * octaves / 2.0) / per_octave);
  }
  return {};
}

std::optional<Warning> final_loss_warning(const spec::record::RunEnd& end,
                                          const spec::record::RunStart& start) {
  constexpr std::int64_t enough_steps = 20;
  constexpr double most_deviations = 4;
  if (!end.final_loss || start.vocab < 2) return {};
  const double uniform = std::log(static_cast<double>(start.vocab));
  if (!(*end.final_loss > uniform)) return {};
  // A run of a few steps ends where it began: an untrained model is a little worse than a uniform guess.
  const auto& expected = start.expected_first_loss;
  const bool worse_than_untrained =
      expected && *end.final_loss > expected->mean + most_deviations * expected->standard_deviation;
  if (end.steps < enough_steps && !worse_than_untrained) return {};
  return Warning{.step = {},
                 .code = "final_loss",
                 .text = "the final loss is " + spec::fixed(*end.final_loss, 4) +
                         ", and a uniform guess has log V = " + spec::fixed(uniform, 4) +
                         ": this run has learned nothing, or has lost it again; look at where its curve "
                         "turns, and try a lower optimizer.learning_rate, a longer schedule.warmup_steps "
                         "or a lower optimizer.clip"};
}

std::optional<Warning> exploded_norm_warning(const std::vector<spec::record::Step>& last,
                                             const NormHistory& all) {
  constexpr std::int64_t enough_steps = 50;
  constexpr double exploded = 10;
  const auto median = all.median();
  if (last.empty() || all.count() < enough_steps || !median) return {};
  double mean = 0;
  for (const auto& step : last) mean += step.gradient_norm / static_cast<double>(last.size());
  if (!(mean > exploded * *median)) return {};
  return Warning{.step = last.back().step,
                 .code = "gradient_norm",
                 .text = "the gradient norm ends at " + spec::scientific(mean, 2) + " (mean of the last " +
                         std::to_string(last.size()) + " steps), " + spec::fixed(mean / *median, 0) +
                         " times the run's median: training is unstable; "
                         "resume from an earlier checkpoint with a lower optimizer.learning_rate"};
}

std::optional<Warning> longer_schedule_warning(const spec::RunConfig& then, const spec::RunConfig& now,
                                               std::int64_t done) {
  if (now.steps <= then.steps) return {};
  const auto rate = [](const spec::RunConfig& config, std::int64_t step) {
    return spec::scientific(spec::learning_rate(schedule_of(config), step), 2);
  };
  const std::string before = rate(then, done - 1), after = rate(now, done);
  if (before == after) return {};
  return Warning{.step = done + 1,
                 .code = "longer_schedule",
                 .text = "this run was planned for " + std::to_string(then.steps) + " steps and goes on to " +
                         std::to_string(now.steps) + ": the learning rate goes from " + before + " to " +
                         after + ", as the longer schedule has it"};
}

}  // namespace assay::impl::run
