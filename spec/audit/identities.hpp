#pragma once
// Numbers of our own record that follow from others of it (spec/record/record.md). A record holds every
// number in full, so each is held to what the trainer's own arithmetic leaves open: its roundings, and clocks
// that are read one after the other. Events are walked once, as they are read; of each step a few numbers
// stay.
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "spec/record/event.hpp"
#include "spec/record/goodput.hpp"

namespace assay::spec::audit {

/// In the order of identities().
enum class Identity {
  perplexity,
  bits_per_byte,
  clip_coefficient,
  executed_flops,
  hfu_of_executed,
  elapsed,
  source_tokens,
  source_losses,
  source_epochs,
  ends,
  goodput,
  run_goodput,
  chain,
  count_
};

struct IdentityRow {
  Invariant invariant;
  const char* missing;  ///< where it cannot be judged
};
std::span<const IdentityRow> identities();

class Identities {
 public:
  /// Holds what `event`, of that line, says; `held` takes what comes of it, by Identity.
  void see(const record::Event& event, std::int64_t line, std::vector<HeldIdentity>& held);
  /// A line that has a hash, or whose record has them, does or does not follow from the line before it.
  void linked(bool right, std::int64_t line, std::vector<HeldIdentity>& held);
  /// A line could not be read. It may have been a start, with other settings and clocks: nothing is held
  /// before the next one.
  void lost() { starts_ = 0, goodput_known_ = false; }

 private:
  /// Of a source of a mixture: how often it was read up to the step before, and its size.
  struct Source {
    std::optional<double> epochs, size;  ///< size: tokens that are trained on
    bool confirmed = false;              ///< `size` served another step than the one that it is from
  };
  /// Of the steps since the last start; skipped ones: what the record says of them.
  struct Sums {
    std::int64_t steps = 0, tokens = 0;
    double seconds = 0, data_wait = 0, saves = 0, skipped = 0, validations = 0;
    std::optional<double> first_began;  ///< at the earliest [s since the trainer's first instruction]
  };

  void take_back_end(std::vector<HeldIdentity>& held);
  void begin(const record::RunStart& start);
  void validation(const record::Validation& validation);
  void step(const record::Step& step);
  void clock(const record::Step& step);
  void executed(const record::Step& step);
  void mixture(const record::Step& step);
  void epochs(const record::StepSource& source, std::int64_t step);
  void end(const record::RunEnd& end);
  void end_of_steps(const record::RunEnd& end, bool sums_known);
  void goodput(const record::RunEnd& end, const record::Goodput& goodput);
  void hold(Identity identity, double printed, const Interval& expected, std::string_view why);
  void hold_sum(Identity identity, double printed, std::initializer_list<double> terms, const char* why);

  std::vector<HeldIdentity>* held_ = nullptr;  ///< of the event at hand
  std::int64_t line_ = 0;
  // Of the last start:
  std::optional<double> clip_, peak_;
  double vocab_ = 0;
  std::int64_t sequence_length_ = 1;
  bool tokens_are_bytes_ = false, ramps_ = false, products_differ_ = false, on_gpu_ = false;
  bool all_steps_ = true;  ///< each step of the start was seen
  Sums sums_;
  std::vector<double> losses_;           ///< of its last steps
  std::int64_t last_step_ = 0;           ///< 0 before the first one of the run, -1 where it is not known
  double elapsed_ = 0, between_ = 0;     ///< at the step before; what lines since then say they took [s]
  std::optional<record::Step> counted_;  ///< the step that executed FLOPs are held to
  bool counted_confirmed_ = false;
  std::map<std::string, Source> sources_;
  record::GoodputOfStarts all_starts_;
  std::int64_t starts_ = 0;
  bool resumed_ = false;                                 ///< the last of them
  bool goodput_known_ = true;                            ///< of the starts before this one, too
  std::optional<std::vector<HeldIdentity>> before_end_;  ///< a run that goes on behind an end has not ended
};

/// The verdict on one of them.
Result judge_identity(const RunRecord& record, Identity identity);

}  // namespace assay::spec::audit
