#pragma once
// The checkpoint that a run goes on from: the newest that is whole. One that is damaged is passed over, and
// named.
#include <optional>
#include <string>
#include <vector>

namespace assay::impl::checkpoint {

/// A damaged checkpoint that is newer than the one that was taken.
struct PassedOver {
  std::string path;
  std::string why;
};

struct NewestWhole {
  std::optional<std::string> path;      ///< nothing: no checkpoint is whole
  std::vector<PassedOver> passed_over;  ///< newest first
};

/// What is examined. `structure`: marker, manifest, table of slices, size and header of each file.
enum class Look { structure, every_byte };

/// What is wrong with a checkpoint's folder; empty: nothing.
std::string damage_in(const std::string& path, Look look);

/// The newest checkpoint with a marker of a run folder that is whole, but for those in `known`, which count
/// as damaged for the reason there.
NewestWhole newest_whole(const std::string& directory, Look look = Look::structure,
                         const std::vector<PassedOver>& known = {});

/// Takes a checkpoint that was passed over out of the way of the one that will be saved at its step: it stays
/// beside it as "step_00000100.damaged" (`ending`), which is no checkpoint's name. Returns its path now.
/// Errors: UserError(io).
std::string set_aside(const std::string& path, const std::string& ending);

}  // namespace assay::impl::checkpoint
