#include "impl/health/progress.hpp"

namespace assay::impl::run {

namespace {
Doing doing_of(Phase phase) {
  switch (phase) {
    case Phase::data_wait:
      return Doing::data_wait;
    case Phase::forward:
      return Doing::forward;
    case Phase::backward:
      return Doing::backward;
    case Phase::reduce:
      return Doing::reduce;
    case Phase::clip:
      return Doing::clip;
    case Phase::update:
      return Doing::update;
    case Phase::other:
    case Phase::count:
      break;
  }
  return Doing::other;
}
}  // namespace

void Progress::enter(Phase phase) { enter(doing_of(phase)); }

void Progress::enter(Doing doing) {
  row_.enter(doing);
  if (doing == Doing::backward) backward_ = true;
  // What ranks agree on ahead of a step's forward is also a reduction, but not that of gradients.
  const bool here = doing != Doing::reduce || backward_;
  if (here && drill_ && drill_->doing == doing && drill_->step == step_) strike(*drill_);
}

}  // namespace assay::impl::run
