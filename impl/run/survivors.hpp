#pragma once
// The last save of a run that has lost a rank: by the ranks that are left, where these hold all of the state
// between them, as copies do (parallel.data = replicate, hybrid).
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/save.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "impl/params/slices.hpp"
#include "impl/run/state_mark.hpp"

namespace assay::impl::run {

/// Which part of the state a rank holds of each set of parameters: ranks with equal numbers hold the same.
using HeldParts = std::vector<std::int64_t>;

/// What rank `rank` writes where rank `lost` does not, no_rank: where all do; nothing where the lost one
/// alone held a part of the state.
std::optional<Writer> writer_without(const std::vector<HeldParts>& parts, int rank, int lost);

class Survivors {
 public:
  /// What is saved besides the buffers, of a state that is whole.
  struct Target {
    checkpoint::State state;
    checkpoint::Retention keep;
  };
  /// `target`: called by `save`, on its thread. Collective.
  Survivors(LayoutGroups& groups, const ParameterBuffers& buffers, const StateMark& mark,
            std::function<Target(const WholeState&)> target);

  /// Saves what is left without rank `lost`, in the run's folder `directory`; where that one `stays`, its
  /// state is whole like the others', and nothing is lost. Called on every rank that is there, by a thread
  /// beside the trainer's, which may hang in a collective or go on; they find each other by the
  /// files that they write. Waits for no stream of the GPU that the trainer uses, and no longer than a disk
  /// may take. Returns what became of it, for people; empty where no step was done since `first_step`, and
  /// where this rank is not the one that commits.
  std::string save(int lost, bool stays, std::int64_t first_step, const std::string& directory) const;

 private:
  std::string written(const Writer& writer, int without, const WholeState& whole, std::uint32_t count,
                      std::chrono::seconds patience, const std::string& directory) const;

  const ParameterBuffers& buffers_;
  const StateMark& mark_;
  const std::function<Target(const WholeState&)> target_;
  const int rank_;
  std::vector<HeldParts> parts_;  ///< of all ranks
  std::string start_;             ///< names this start of the program
};

}  // namespace assay::impl::run
