#pragma once
// What the wall-clock time of a run went into, over all of its starts.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// Puts it together from the events of a record in their order, of which the first is a run_start. Of a start
/// whose end says its goodput the parts are those, with the time of its steps split: steps that the run
/// rests on, steps behind the checkpoint that a later start resumed from, steps that were skipped. Of a start
/// without an end its steps alone are known.
class GoodputOfStarts {
 public:
  void add(const Event& event);
  /// No step so far will be done again: what all of them came to is kept, and not each.
  void settle();
  RunGoodput sum() const;

 private:
  struct DoneStep {
    std::int64_t step = 0;
    double seconds = 0, data_wait = 0, saves = 0;  ///< `seconds`: without the others
    bool skipped = false, redone = false;
  };
  /// What steps came to [s].
  struct Times {
    double skipped = 0, redone = 0, productive = 0, data_wait = 0, saves = 0;
    void add(const DoneStep& step);
  };
  struct Start {
    Times settled;
    std::vector<DoneStep> steps;
    std::optional<Goodput> goodput;
  };
  void redo_from(std::int64_t first);
  void add(const DoneStep& step);

  std::vector<Start> starts_;
  std::int64_t last_ = 0;  ///< highest number of a step that is not to be done again
};

/// Over all of `events`.
RunGoodput run_goodput(const std::vector<Event>& events);

/// "93.1 % of 2 h 5 min in productive steps; start-up 2.9 %, saves 2.0 %, steps done again 2.0 %": parts
/// below 0.05 % are left out, the largest first. Domain: seconds > 0.
std::string goodput_text(const RunGoodput& goodput);

}  // namespace assay::spec::record
