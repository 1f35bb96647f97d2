#pragma once
// Where this rank's run is, for those that watch it.
#include <cstdint>
#include <optional>

#include "impl/health/fault_drill.hpp"
#include "impl/health/rank_row.hpp"
#include "impl/metrics/phases.hpp"

namespace assay::impl::run {

class Progress {
 public:
  /// `row` lives longer. `drill`: of this rank, if it has one.
  explicit Progress(Row& row, std::optional<FaultDrill> drill = {}) : row_(row), drill_(drill) {}

  void begin_step(std::int64_t step) {
    backward_ = false;
    row_.begin_step(step_ = step);
  }
  void end_step(double seconds) { row_.end_step(seconds); }
  /// What comes next is of this kind. Errors: what a drill throws.
  void enter(Phase phase);
  void enter(Doing doing);
  void tick() { row_.tick(); }

 private:
  Row& row_;
  std::optional<FaultDrill> drill_;
  std::int64_t step_ = 0;
  bool backward_ = false;  ///< this step has come to it
};

}  // namespace assay::impl::run
