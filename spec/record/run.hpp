#pragma once
// A whole run put together from the events of its record.
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/batch/ramp.hpp"
#include "spec/record/event.hpp"
#include "spec/record/thin_steps.hpp"

namespace assay::spec::record {

struct Run {
  RunStart start;                            ///< of the last start of the program
  std::vector<Step> steps;                   ///< in order; of a step that was done twice, the later one
  std::optional<ThinnedSteps> thinned = {};  ///< where `steps` are some of a long run's (read_run.hpp)
  std::vector<Warning> warnings;
  std::vector<Checkpoint> checkpoints;
  std::vector<ResumeFrom> resumes;
  std::vector<Validation> validations;  ///< in order, as steps
  std::vector<SkippedStep> skipped;     ///< likewise
  std::optional<WeightsFrom> weights;   ///< that it started from instead of initial ones
  std::optional<Memory> memory;         ///< of the last start
  std::vector<Profile> profiles;        ///< in order
  std::optional<Samples> samples;       ///< the last
  std::optional<RunEnd> end;            ///< of the last start; absent while running, or after a crash
  std::vector<std::optional<RunEnd>> earlier_ends;  ///< of the starts before it, in their order
};

/// Domain: `events` starts with a run_start (read_events ensures it). A resume drops the steps after the one
/// that it resumed from; a step that is not later than its predecessor replaces it and what follows.
Run assemble(const std::vector<Event>& events);

/// Puts a run together, event by event.
class Assembler {
 public:
  void add(const Event& event) { std::visit(*this, event); }
  /// Step `first` is done, or done again: nothing that was said of it, or of later ones, counts any more.
  void drop_from(std::int64_t first);
  Run run;

  // Of one event; for `add`.
  void operator()(const RunStart& start);
  void operator()(const Step& step);
  void operator()(const SkippedStep& skipped);
  void operator()(const Warning& warning) { run.warnings.push_back(warning); }
  void operator()(const Checkpoint& checkpoint) { run.checkpoints.push_back(checkpoint); }
  void operator()(const ResumeFrom& resume);
  void operator()(const WeightsFrom& weights) { run.weights = weights; }
  void operator()(const Memory& memory) { run.memory = memory; }
  void operator()(const Validation& validation);
  void operator()(const Profile& profile) { run.profiles.push_back(profile); }
  void operator()(const Samples& samples) { run.samples = samples; }
  void operator()(const RunEnd& end) { run.end = end; }

 private:
  bool started_ = false;
};

/// What all steps of a run come to.
StepSums sums_of(const Run& run);

/// The global batch of a start, with its ramp, as its settings say it. Errors: UserError(bad_data).
GlobalBatch global_batch(const RunStart& start);

/// Fraction of the gap from log V, the loss of a uniform guess, to the floor that `loss` closes: 1 at the
/// floor. Unit of the losses: [nats per token]. Domain: floor < log V. Errors: SpecError record_c2 otherwise.
double gap_closed(double loss, double floor, std::int64_t vocab);

/// Of all starts of the program together: their seconds, and the run's steps per second of these. Nothing
/// where a start has left no goodput.
std::optional<Goodput> goodput(const Run& run);

/// "steps 93.1 %, saves 4.0 %, start-up 2.9 %": its parts as fractions of its seconds; parts of 0 are left
/// out. Domain: seconds > 0.
std::string fractions(const Goodput& goodput);

/// Steps at the end of a run whose mean is its final loss.
inline constexpr std::int64_t final_loss_steps = 10;

/// Mean loss of the last `count` steps of `steps`, or of all when there are fewer; nothing when there are
/// none.
std::optional<double> mean_loss(const std::vector<Step>& steps, std::int64_t count);

}  // namespace assay::spec::record
