#pragma once
// The folder that a run writes to.
#include <optional>
#include <string>

#include "impl/comm/communicator.hpp"
#include "spec/config/run_config.hpp"

namespace assay::impl::run {

/// The folder that this run writes to, created: run.directory itself when continuing or when it holds no run
/// yet, else the first free one of run.directory-2, -3, ...: another run is never written over, nor one that
/// starts at the same moment, since the empty record that is created claims the folder. Collective: rank 0
/// chooses. Errors: UserError(io), also where what a run writes within its folder is a link.
std::string run_directory(const spec::RunConfig& config, Communicator& communicator);

/// A folder for a run whose own, `directory`, was removed, renamed or unmounted, or has another one in its
/// place; an empty record claims it. The first of these that can be made: the same path, unless another run
/// is there by now; beside it directory-2, -3, ...; the same names in the working directory. Errors:
/// UserError(io) where none can.
std::string another_folder(const std::string& directory);
/// Gives back a folder that was claimed, and in which nothing was written.
void unclaim(const std::string& directory);

/// What is said of checkpoints of `directory` that are links; nothing where none is.
std::optional<std::string> linked_checkpoints(const std::string& directory);

/// What a user does after the run of `directory` was ended from outside: "go on with ..." and the settings
/// that find its last checkpoint, or, where none is committed, that it starts anew.
std::string way_to_go_on(const std::string& directory);

}  // namespace assay::impl::run
