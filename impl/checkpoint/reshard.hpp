#pragma once
// A checkpoint in another number of files.
#include <cstdint>
#include <string>

namespace assay::impl::checkpoint {

struct ReshardRequest {
  std::string checkpoint;  ///< a checkpoint's folder, or a run's, of either form
  std::string folder;      ///< that is made: a checkpoint of the present form
  std::int64_t files = 1;
};

struct Resharded {
  std::string from;
  std::int64_t step = 0, bytes = 0;
};

/// Writes the same state as `files` files with an equal part each, in an order that does not depend on how
/// it was saved: what any layout saved of the same state becomes the same files. A run loads it, as every
/// checkpoint, in any layout. Every hash is compared on the way, one piece of a tensor is in memory at a
/// time, and the folder is there when all of it is. Errors: UserError(usage): the folder exists, or `files` <
/// 1 or > 100,000; UserError(bad_data): the checkpoint is damaged; UserError(io).
Resharded reshard(const ReshardRequest& request);

}  // namespace assay::impl::checkpoint
