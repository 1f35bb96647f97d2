#pragma once
// Checkpoint folders of a run: their names, which of them count, and which may go.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/manifest.hpp"
#include "impl/machine/output_folder.hpp"
#include "spec/record/lines.hpp"

namespace assay::impl::checkpoint {

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr const char* best_name = "best";
inline constexpr const char* marker_name = "COMMITTED";

struct Found {
  std::int64_t step;
  std::filesystem::path path;
  bool linked = false;  ///< a link to a folder elsewhere: read as any other, never removed
};

/// "step_00000100"
std::string folder_name(std::int64_t step);

/// What is wrong with the name of a committed checkpoint that is a copy of another step's, or was renamed;
/// empty where nothing is, or where it is not committed.
std::string misnamed(const std::filesystem::path& folder);

/// Errors: UserError(bad_data) checkpoint_c2, c6 where the folder's name is that of another step, and where
/// the file cannot be read.
Manifest read_manifest(const std::filesystem::path& folder);

/// Of a checkpoint whose marker holds the hash of its manifest. Errors: as read_manifest; UserError(bad_data)
/// checkpoint_c1, which ends in `advice`.
Manifest committed_manifest(const std::filesystem::path& folder, const std::string& advice);

/// content_hash of the file, whatever it holds. Errors: UserError(bad_data) where it cannot be read.
std::string hash_of_manifest(const std::filesystem::path& folder);

/// The last files of a folder, in which all others are durable: the manifest, then the marker, then the
/// folder's entries. Errors: UserError(io).
void write_manifest(const OutputFolder& folder, const Manifest& manifest);

/// Where the record of the run folder `directory` stood when its committed checkpoints were saved, as far as
/// they say so. Linked ones, which may be another run's, are left out.
std::vector<spec::record::StatedPlace> places_in_record(const std::filesystem::path& directory);

/// Whether committed_manifest gives one.
bool committed(const std::filesystem::path& folder);

/// Checkpoints in `parent` that have a marker, right or wrong, by rising step. A missing parent holds none.
std::vector<Found> marked_checkpoints(const std::filesystem::path& parent);

/// Those whose marker is right.
std::vector<Found> committed_checkpoints(const std::filesystem::path& parent);

/// Removes what crashed saves and removals left behind in `parent`: .partial folders, folders without a
/// marker. Errors: UserError(io) where `parent` itself is a link.
void remove_leftovers(const std::filesystem::path& parent);

/// The committed checkpoint of `parent` that is named the best; nothing where none is.
std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& parent);

/// Names the checkpoint `path` of `parent` the best: the link `best` leads to it from here on, and at no
/// moment to none. Errors: UserError(io).
void name_best(const std::filesystem::path& parent, const std::filesystem::path& path);

/// Removes the oldest committed checkpoints beyond the newest `keep` (>= 1), but for `also`, marker first;
/// and a link `best` whose checkpoint is gone. What is linked is not counted and stays. Errors:
/// UserError(io).
void retain_newest(const std::filesystem::path& parent, std::int64_t keep,
                   const std::optional<std::filesystem::path>& also = {});

/// Removes committed checkpoints, oldest first, until `bytes` are free on the disk of `parent`: none that is
/// as new as the newest whole one, nor `also`; and none at all where all of them would not be enough. Returns
/// those that are gone. Errors: UserError(io).
std::vector<std::filesystem::path> make_room(const std::filesystem::path& parent, std::int64_t bytes,
                                             const std::optional<std::filesystem::path>& also = {});

}  // namespace assay::impl::checkpoint
