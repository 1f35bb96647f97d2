#pragma once
// Checkpoints: slices in safetensors files, one a rank, with a JSON index of content hashes, committed by a
// marker written last.
// Layout, order of writes and what survives a crash: spec/checkpoint/checkpoint.md.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/data_file.hpp"
#include "impl/checkpoint/manifest.hpp"
#include "impl/comm/communicator.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl::checkpoint {

/// The state of a run besides the buffers. Sample order, learning rate and randomness are pure functions of
/// it.
struct State {
  std::int64_t step = 0;    ///< completed optimizer steps
  std::int64_t tokens = 0;  ///< tokens trained on
  std::string config;       ///< the run's settings as dumped TOML, with whole paths
  /// Names of those that followed from others; nothing where an earlier version saved it.
  std::optional<std::vector<std::string>> derived = {};
  std::optional<std::vector<DataFile>> data = {};  ///< what the run reads; nothing of an earlier version
  std::optional<Validated> validation = {};        ///< at this step
  std::string model = {};                          ///< as TOML (spec/model); empty of an earlier version
  std::int64_t skipped = 0;  ///< steps of these that were not finite and changed nothing
  std::string record =
      {};  ///< of the last line of the run's record that is on the disk, its hash; rank 0's counts
};

/// Which committed checkpoints of a run stay: the `newest` (>= 1) and, where `best` is set, the one that is
/// named checkpoints/best.
struct Retention {
  Retention(std::int64_t newest_checkpoints, bool with_best = false)
      : newest(newest_checkpoints), best(with_best) {}
  std::int64_t newest;
  bool best;
};

struct Saved {
  std::string path;
  std::int64_t bytes = 0;  ///< of its tensor files
  double seconds = 0;
  /// Older ones that went before it was written, for the disk was full.
  std::vector<std::string> made_room = {};
  /// Why older checkpoints beyond `keep` are still there, or half removed. The new one is committed.
  std::optional<std::string> not_removed;
};

/// Writes <directory>/checkpoints/step_<step> so that a crash at any moment loses neither this checkpoint
/// once committed nor an older one: temporary folder, each rank's file hashed while written, fsync of each,
/// manifest, marker, fsync, rename, fsync of the parent; only then older ones that `keep` leaves out are
/// deleted. With keep.best, a state with the lowest loss on its validation set is named checkpoints/best
/// before that: a link, which is replaced at once. Returns on rank 0 what was saved. Collective, and all
/// ranks wait for it; impl/checkpoint/save.hpp has its steps. `piece` is called before each slice is written.
/// Errors: AgreedError(io) naming file, reason (disk full, permission), the bytes that the checkpoint needs
/// and those that are free: then older checkpoints are as they were, nothing of the new one is left, and a
/// later call may succeed; AgreedError(non_finite) naming the parameter when a value is NaN or infinite: such
/// a state is never saved.
Saved save(
    const std::string& directory, const ParameterBuffers& buffers, const State& state, const Retention& keep,
    LayoutGroups& groups, const std::function<void()>& piece = [] {});
/// By a lone rank, whose buffers hold everything. Errors are UserError.
Saved save(const std::string& directory, const ParameterBuffers& buffers, const State& state,
           const Retention& keep);

/// Bytes of the tensors that a checkpoint holds: weights and two moments, stored as `states`. Headers and the
/// manifest add a few thousand. [B]
std::int64_t size_on_disk(const spec::Inventory& inventory, Dtype states);

/// What a checkpoint folder says of its run, without its tensors. Errors: UserError(bad_data), as `load`.
State read_state(const std::string& path);

/// Loss of the checkpoint that is named checkpoints/best in a run folder, and of which set it is; nothing
/// where none is.
std::optional<Validated> best_of(const std::string& directory);

/// Hash of a committed checkpoint's manifest, which holds the hashes of its files: the same for two folders
/// where they continue the same run from the same step. Errors: UserError(bad_data), as `load`.
std::string content_of(const std::string& path);

/// Reads of a checkpoint folder, saved in whatever layout, what this rank's `buffers` hold. Each byte of the
/// slices is hashed once over all ranks, by one that reads it anyway; where ranks see other files, or the
/// checkpoint is of schema 1, whole files are hashed before, dealt out to the ranks that see the same.
/// Collective. Errors: AgreedError(bad_data) naming file and tensor, and rank and host where others found
/// nothing wrong. Where marker, manifest, sizes or the model are at fault, `buffers` are as they were; after
/// damage within a slice they are of no use, and may be loaded from another checkpoint.
State load(const std::string& path, ParameterBuffers& buffers, LayoutGroups& groups);
/// By ranks that each hold everything.
State load(const std::string& path, ParameterBuffers& buffers, Communicator& communicator);
/// By one rank.
State load(const std::string& path, ParameterBuffers& buffers);

/// Path of the newest checkpoint of a run folder that has a marker; the remains of a crash have none. Only
/// `load` checks for damage, so that a damaged checkpoint is refused by name and not skipped.
std::optional<std::string> newest(const std::string& directory);

/// Completed steps of the checkpoint `path`, by its manifest. Errors: UserError(bad_data).
std::int64_t step_of(const std::string& path);

}  // namespace assay::impl::checkpoint
