#include "impl/run/expert_loads.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "impl/run/start/memory_limits.hpp"
#include "spec/error.hpp"
#include "spec/memory/expert_load.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

namespace {
std::string times(double load) { return spec::fixed(load, 2) + " times the mean rows"; }
std::string in_bytes(const Count& bytes) { return spec::bytes(bytes.to_int64()); }

/// Settings that make a plan with more load fit, or the load less.
std::string ways(const spec::memory::Plan& plan, const Count& room) {
  std::string text = ways_out(plan, room);
  if (plan.setting.capacity > 0)
    text += "; a smaller experts.capacity drops more of it";
  else if (plan.setting.linear.recipe == spec::quantise::Recipe::none)  // config_c44
    text += "; experts.capacity=1.25 drops what is above that";
  return text + "; a larger experts.balance keeps loads even";
}
}  // namespace

ExpertLoads::ExpertLoads(spec::memory::Plan plan, const Count& room, std::function<Count()> now)
    : plan_(std::move(plan)), room_(room), now_(std::move(now)) {}

void ExpertLoads::begin(Pass pass, std::int64_t step) { pass_ = pass, step_ = step; }

void ExpertLoads::arrived(std::int64_t layer, double load) {
  if (pass_ == Pass::few_tokens) return;
  largest_ = std::max(largest_, load);
  if (layer == 0) known_.clear(), of_pass_ = 0;
  of_pass_ = std::max(of_pass_, load);
  known_.resize(std::max(known_.size(), static_cast<std::size_t>(layer) + 1), 1);
  known_[static_cast<std::size_t>(layer)] = load;
  const bool trains = pass_ == Pass::step;
  // A pass without backward has one layer's rows at a time.
  const std::vector<double> loads = trains ? known_ : std::vector<double>{load};
  if (of_pass_ <= plan_.setting.load || has_fitted(loads)) return;
  const spec::memory::Plan plan = planned(loads);
  if (plan.peak <= room_) return;
  const Count room = now_ ? std::max(room_, now_()) : room_;
  if (plan.peak <= room) return;
  throw UserError(ExitCode::usage, (trains ? "step " : "validation after step ") + std::to_string(step_) +
                                       ": routing brings the experts of this rank up to " + times(of_pass_) +
                                       " (parallel.expert = " + std::to_string(plan_.setting.expert_ranks) +
                                       "): that takes " + in_bytes(plan.peak) + " at the fullest moment, " +
                                       plan.moment + ", and there is room for " + in_bytes(room) + "; " +
                                       ways(plan, room));
}

spec::memory::Plan ExpertLoads::planned(const std::vector<double>& loads) {
  spec::memory::Setting setting = plan_.setting;
  const bool trains = pass_ == Pass::step;
  setting.load = trains ? 1 : loads.front(), setting.sampled = 0;
  setting.layer_loads = trains ? loads : std::vector<double>();
  setting.layer_loads.resize(static_cast<std::size_t>(setting.model.sparse_layers()), 1);
  ++plans_;
  return spec::memory::plan(setting);
}

/// A plan takes the host 11 ms of olmoe-1b-7b and 81 of qwen3-30b-a3b, and every pass has loads that differ a
/// little: what takes less than what has fitted, rounded up, fits (spec/plan/plan.md).
bool ExpertLoads::has_fitted(const std::vector<double>& loads) {
  std::vector<double>& fitted = fitted_[pass_ == Pass::step ? 0 : 1];
  if (fitted.size() < loads.size()) fitted.resize(loads.size(), 1);
  bool less = true;
  for (std::size_t i = 0; i < loads.size(); ++i) less = less && loads[i] <= fitted[i];
  if (less) return true;
  constexpr double steps = 16;
  const double most = spec::memory::most_load(plan_.setting);
  std::vector<double> rounded = loads, both = fitted;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    rounded[i] = std::max(loads[i], std::min(std::ceil(loads[i] * steps) / steps, most));
    both[i] = std::max(both[i], rounded[i]);
  }
  for (const std::vector<double>& each : {both, rounded})
    if (planned(each).peak <= room_) {
      fitted = each;
      return true;
    }
  return false;
}

std::optional<spec::record::Warning> ExpertLoads::warning() const {
  spec::memory::Setting setting = plan_.setting;
  setting.load = spec::memory::most_load(setting);
  if (setting.expert_ranks == 1 || plan_.setting.load >= setting.load) return {};
  const spec::memory::Plan most = spec::memory::plan(setting);
  return spec::record::Warning{
      .step = {},
      .code = "expert_load",
      .text = "routing can bring the experts of a rank " + times(setting.load) + ", which takes " +
              in_bytes(most.peak) + ", and there is room for " + times(plan_.setting.load) +
              " in every layer: a step that does not fit will end the run; to hold any routing " +
              ways(most, room_)};
}

}  // namespace assay::impl::run
