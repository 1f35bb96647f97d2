#include "spec/record/thin_steps.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "spec/record/fields.hpp"
#include "spec/record/run.hpp"

namespace assay::spec::record {
namespace {

/// Calls `number` with each number of a step, also where an optional one is absent: always in the same order,
/// the losses of its sources last.
void each_number(auto& step, auto&& number) {
  fields(step, [&](const char*, auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_arithmetic_v<Member> || std::is_same_v<Member, std::optional<double>>)
      number(member);
    else if constexpr (std::is_same_v<Member, Phases>)
      fields(member, [&](const char*, auto& phase) { number(phase); });
  });
  if (step.sources)
    for (auto& source : *step.sources) number(source.loss);
}

/// NaN where there is none.
double value_of(double number) { return number; }
double value_of(std::int64_t number) { return static_cast<double>(number); }
double value_of(const std::optional<double>& number) { return number.value_or(NAN); }

void set(double& number, double value) { number = value; }
void set(std::int64_t& number, double value) { number = std::llround(value); }
void set(std::optional<double>& number, double value) { number = value; }

}  // namespace

void StepSums::add(const Step& step) {
  ++count;
  tokens += step.tokens;
  seconds += step.seconds;
  if (step.mfu) mfu.sum += *step.mfu, ++mfu.count;
  if (step.hfu) hfu.sum += *step.hfu, ++hfu.count;
  most_bytes = std::max({most_bytes, step.resident_bytes, step.device_peak_bytes});
  double* sum[16];
  std::size_t i = 0;
  fields(phases, [&](const char*, double& phase) { sum[i++] = &phase; });
  i = 0;
  fields(step.phases, [&](const char*, double phase) {
    if (std::isfinite(phase)) *sum[i] += phase;
    ++i;
  });
}

void StepThinner::add(const Step& step) {
  thinned_.sums.add(step);
  so_far_.tokens += static_cast<double>(step.tokens);
  so_far_.seconds += std::isfinite(step.seconds) ? step.seconds : 0;
  const std::int64_t index = index_++;
  if (count_ <= most_whole) {
    result_.steps.push_back(step);
    return;
  }
  const double share = static_cast<double>(index) / static_cast<double>(count_);
  if (const auto bucket = static_cast<std::int64_t>(share * buckets); bucket != bucket_) {
    end_bucket();
    bucket_ = bucket;
  }
  take_numbers(step, index);
  kept_.push_back({index, step, so_far_});
  constexpr std::size_t at_once = 512;
  if (kept_.size() >= 2 * at_once) drop_all_but_extremes();
}

void StepThinner::take_numbers(const Step& step, std::int64_t index) {
  std::size_t i = 0;
  each_number(step, [&](const auto& number) {
    const double value = value_of(number);
    if (i == extremes_.size()) extremes_.emplace_back(), means_.emplace_back();
    Extremes& seen = extremes_[i];
    Mean& mean = means_[i++];
    if (!std::isfinite(value)) return;
    mean.sum += value, ++mean.count;
    if (seen.least < 0 || value < seen.low) seen.low = value, seen.least = index;
    if (seen.greatest < 0 || value > seen.high) seen.high = value, seen.greatest = index;
  });
  bucket_so_far_.tokens += so_far_.tokens, bucket_so_far_.seconds += so_far_.seconds;
  ++in_bucket_;
}

/// The first of a run and the last ones are drawn whatever their values.
void StepThinner::drop_all_but_extremes() {
  std::vector<std::int64_t> extremes;
  for (const Extremes& seen : extremes_) extremes.push_back(seen.least), extremes.push_back(seen.greatest);
  std::sort(extremes.begin(), extremes.end());
  std::erase_if(kept_, [&](const Kept& each) {
    const bool at_an_end = each.index == 0 || each.index + final_loss_steps >= count_;
    return !at_an_end && !std::binary_search(extremes.begin(), extremes.end(), each.index);
  });
}

void StepThinner::end_bucket() {
  if (in_bucket_ == 0) return;
  Step mean = kept_.back().step;
  mean.sample_hash.clear(), mean.weights_hash.reset();
  std::size_t i = 0;
  each_number(mean, [&](auto& number) {
    if (const Mean& each = means_[i++]; each.count > 0)
      set(number, each.sum / static_cast<double>(each.count));
  });
  thinned_.means.push_back(std::move(mean));
  const auto count = static_cast<double>(in_bucket_);
  thinned_.means_at.push_back({bucket_so_far_.tokens / count, bucket_so_far_.seconds / count});
  drop_all_but_extremes();
  for (Kept& each : kept_) {
    result_.steps.push_back(std::move(each.step));
    thinned_.so_far.push_back(each.so_far);
  }
  kept_.clear(), extremes_.clear(), means_.clear();
  bucket_so_far_ = {}, in_bucket_ = 0;
}

StepThinner::Result StepThinner::result() && {
  if (count_ > most_whole) {
    end_bucket();
    result_.thinned = std::move(thinned_);
  }
  return std::move(result_);
}

}  // namespace assay::spec::record
