#pragma once
// What a checkpoint or a folder of Hugging Face weights holds, and whether it is whole.
#include <string>
#include <vector>

namespace assay::impl::checkpoint {

/// A line of what is shown: "parameters", "4,280,320".
struct ShownLine {
  std::string name, text;
};

/// Of a checkpoint's folder, a run's (its newest checkpoint), or a folder of Hugging Face weights. Headers
/// and the manifest are read, no tensor. Errors: UserError(bad_data).
std::vector<ShownLine> show_checkpoint(const std::string& path);

/// Reads every byte: of a checkpoint, all hashes; of Hugging Face weights, names and shapes against its
/// config.json, and that no value is NaN or infinite (weight_files_c8). Returns what was checked. Errors:
/// UserError(bad_data) naming what is damaged; all damaged files of a checkpoint.
std::vector<ShownLine> verify_checkpoint(const std::string& path);

}  // namespace assay::impl::checkpoint
