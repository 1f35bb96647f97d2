#pragma once
// What a run warns of while it trains: each text a function of what was measured and what was expected of it.
// Nothing where all is as it should be.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// The loss of step 1 is more than four standard deviations from what `start` expects of an untrained model;
/// or, of a run that starts from weights, above log V, so that a uniform guess would be better. [nats per
/// token]
std::optional<spec::record::Warning> first_loss_warning(double loss, const spec::record::RunStart& start);

/// Options of the model's config.json that count for nothing, the first twenty, in one line; nothing where
/// there are none.
std::optional<std::string> options_text(const std::vector<std::string>& without_effect);

/// The first step's tensors took over 2 % more, or less, than was planned.
std::optional<spec::record::Warning> memory_plan_warning(const spec::record::Memory& memory);

/// The step ran more FLOPs in its time than the peak in `start` allows, so that it has no MFU or no HFU.
std::optional<spec::record::Warning> above_peak_warning(const spec::record::Step& step,
                                                        const spec::record::RunStart& start);

/// A rank may run on no processor of its GPU's NUMA node: what that costs, and how to bind it. The first such
/// rank of `start`, and how many there are.
std::optional<spec::record::Warning> numa_warning(const spec::record::RunStart& start);

/// `waiting` bytes of the record at `path` were not taken by its disk, for that `reason` (errno).
std::optional<spec::record::Warning> record_waits_warning(std::size_t waiting, const std::string& path,
                                                          int reason);

/// A run that wrote to `before` writes to `now` from here on (Run::keep_a_folder). `record_alone`: the folder
/// is the same, and its record was gone; `whole`: what was written of it before is there.
spec::record::Warning folder_warning(const std::string& before, const std::string& now, bool record_alone,
                                     bool whole);

/// How often gradient norms of which size were seen: it stays as large as it is, however long a run.
class NormHistory {
 public:
  void add(double norm);
  std::int64_t count() const { return count_; }
  /// To within 10 %; nothing where none was finite.
  std::optional<double> median() const;

 private:
  static constexpr int per_octave = 4, octaves = 128;
  std::array<std::int64_t, static_cast<std::size_t>(per_octave) * octaves> counts_{};
  std::int64_t count_ = 0;
};

/// `end` says a final loss above log V, and the steps before were enough to be below it, or it is above what
/// is expected of an untrained model, too.
std::optional<spec::record::Warning> final_loss_warning(const spec::record::RunEnd& end,
                                                        const spec::record::RunStart& start);

/// The mean gradient norm of the `last` steps is over ten times the median of all, of which there are enough
/// to tell.
std::optional<spec::record::Warning> exploded_norm_warning(const std::vector<spec::record::Step>& last,
                                                           const NormHistory& all);

/// More steps are another schedule: the `done` steps before were trained as if the old end were the end.
/// Nothing where the learning rate stays where it was, to what is printed of it.
std::optional<spec::record::Warning> longer_schedule_warning(const spec::RunConfig& then,
                                                             const spec::RunConfig& now, std::int64_t done);

}  // namespace assay::impl::run
