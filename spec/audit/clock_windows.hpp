#pragma once
// Stretches of a log between two stamps, beside what the numbers of their lines add up to.
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/audit/evidence.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

/// Chosen: up to a quarter of a window is taken for pauses (evaluation, checkpoints), so that a clock that
/// shows half as much again as the steps contradicts, well before one that shows twice as much.
constexpr double pauses = 0.25;
/// Between the end of a step and the stamp of its line. Chosen: some ten times what it takes to put a line
/// together and to write it. [s]
constexpr double until_stamped = 0.01;

struct ClockWindow {
  Interval steps_time;  ///< what the printed step times or rates add up to [s]
  double printed = 0;
  Interval clock;       ///< what the clock says [s]
  bool whole = true;    ///< every step of it is logged
  bool paused = false;  ///< a line of an evaluation or of saving stands in it
  std::int64_t line = 0;
  double ratio() const { return printed / clock.middle(); }
};

/// Of which steps the numbers of a line are.
enum class Of {
  since_the_line_before,  ///< their mean, of as many as Times::interval: of the very steps that a clock shows
  one,                    ///< its own time: every logged step stands for those since the one before
  unknown  ///< a rate, of one step or a mean since the start, whose first steps are slow: never too fast
};

struct Times {
  bool by_rate = false;
  Of of = Of::one;
  /// Steps between two lines as the trainer writes them; 1 where an excerpt of a log with more lines looks
  /// the same: what the steps of lines that are not here took is known only as `unlogged_steps.hpp` says.
  double interval = 1;
  /// The log begins with the first step, and goes on so many behind it as its lines are apart.
  bool from_the_first = false;
  double longest = 1e300;  ///< steps between two lines, beyond which lines are lost [steps]
  /// A rate of one GPU makes of a step of all as many times its time: by its trainer's source. [GPUs]
  double of_gpus = 1;
};

/// Whether a line of an evaluation or of saving stands between these two lines of the log.
bool pause_between(const Evidence& e, std::int64_t from, std::int64_t to);

/// Of the times, or the tokens/s, of this log.
Times times_of(const Evidence& e, bool by_rate);

/// Windows of `lines` lines of every stretch that has three, one behind the other, or from every line on
/// (`sliding`).
std::vector<ClockWindow> clock_windows(const Evidence& e, const Times& times, std::size_t lines,
                                       bool sliding = false);

/// Windows of a ninth of each stretch's lines: a median over them leaves rare pauses out.
std::vector<ClockWindow> ninths(const Evidence& e, const Times& times);

/// Whether the clock runs like the steps in at least one of twenty windows of some length, whatever the
/// stamps leave open: rates or times that are a multiple of what they should be agree nowhere, so what the
/// clock shows more elsewhere are pauses.
bool runs_like_the_steps(const Evidence& e, const Times& times);

/// Of a clock that shows more than the steps of each two neighbouring lines.
Missed missed_alike(const Evidence& e, const Times& times);

}  // namespace assay::spec::audit
