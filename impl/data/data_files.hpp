#pragma once
// Token files as people name them: files, folders of files, and patterns.
#include "spec/config/run_config.hpp"

namespace assay::impl::data {

/// Puts files in the place of folders and patterns in data.paths and eval.paths, sorted by name, byte by
/// byte: of a folder those that end in .bin and .npy, of a pattern (*, ?, [a-z] as glob(7) has them; ** is
/// none) what it matches, folders likewise, but for what stands beside token files (.idx, .ends, .json). A
/// path that is there is taken as it stands, whatever letters it has, and one without such letters is left to
/// who opens it. The number of files of a source in data.mixture grows with its entries. Errors:
/// UserError(usage) where nothing is found, with what was looked for; UserError(io) where a folder cannot be
/// read.
void name_data_files(spec::RunConfig& config);

}  // namespace assay::impl::data
