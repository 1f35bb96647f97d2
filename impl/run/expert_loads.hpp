#pragma once
// How many rows of tokens routing brings to this rank's experts, held to what its memory has room for.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "spec/plan/plan.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

class ExpertLoads {
 public:
  /// `plan`: the run's, of the load up to which it holds. `room`: for a rank's tensors, as known at the start
  /// [B]; `now`: asked where that is not enough.
  ExpertLoads(spec::memory::Plan plan, const Count& room, std::function<Count()> now = {});

  const spec::memory::Plan& plan() const { return plan_; }

  /// What comes from here on is of step `step`, of a validation after it, or of a few tokens, of which
  /// nothing is judged.
  enum class Pass { step, validation, few_tokens };
  void begin(Pass pass, std::int64_t step);
  /// Rows of sparse layer `layer`, from 0, over their mean. Errors: UserError(usage) where the pass would
  /// take more than there is room for, by what is known of its layers so far and the mean of the others: the
  /// load, the bytes and the settings that fit.
  void arrived(std::int64_t layer, double load);

  double largest() const { return largest_; }    ///< so far
  std::int64_t plans() const { return plans_; }  ///< made so far, on the thread that trains

  /// Where routing can bring more than there is room for: how much, and the settings that hold any of it.
  std::optional<spec::record::Warning> warning() const;

 private:
  spec::memory::Plan planned(const std::vector<double>& loads);
  bool has_fitted(const std::vector<double>& loads);

  const spec::memory::Plan plan_;
  const Count room_;
  const std::function<Count()> now_;
  Pass pass_ = Pass::few_tokens;
  std::int64_t step_ = 0;
  std::vector<double> known_;  ///< of the layers of this pass
  double of_pass_ = 0;         ///< the largest of them
  double largest_ = 0;
  std::vector<double> fitted_[2];  ///< loads of which a plan fits, of a step's layers and of a validation's
  std::int64_t plans_ = 0;
};

}  // namespace assay::impl::run
