#pragma once
// Losses that JSON says to be null. JSON has no word for nan, and many writers put null there; others put it
// where a step's loss was not logged.
#include <cstdint>
#include <optional>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// Stands for a loss that is null until all of the run was read.
Printed null_loss(std::int64_t line);
bool is_null(const std::optional<Printed>& loss);

/// Whether a row whose loss is null is a step like those before it. Tables that were put together from
/// several also hold rows of validations, in which all of a step's columns are null.
class NullLossRows {
 public:
  /// A row in which a number stands for the loss.
  void saw(const Step& step) { fields_ = others(step); }
  /// `last`: number of the step before it.
  bool is_step(const Step& step, std::optional<double> last) const;

 private:
  static std::uint32_t others(const Step& step);
  std::optional<std::uint32_t> fields_;  // but for the loss, of the last such row
};

/// A run that ends in more of them than stood together anywhere before ends in losses that are no numbers;
/// all others were not printed. Fills in RunRecord::null_losses::at_end.
void settle_null_losses(RunRecord& run);

}  // namespace assay::spec::audit
