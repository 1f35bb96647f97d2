#pragma once
// The files of a checkpoint's slices: their names and headers (spec/checkpoint/checkpoint.md).
#include <functional>
#include <string>
#include <vector>

#include "impl/checkpoint/manifest.hpp"

namespace assay::impl::checkpoint {

/// "rank-00002-of-00008.safetensors"
std::string rank_file(int rank, int ranks, const std::string& ending);

/// The header of a file that holds these slices one behind the other, and sets where they begin in it.
std::string slice_header(std::vector<SliceEntry>& slices,
                         const std::function<const ParameterEntry&(const std::string& name)>& parameter);

}  // namespace assay::impl::checkpoint
