#pragma once
// The header of a safetensors file on a disk.
#include "impl/checkpoint/input_file.hpp"
#include "spec/checkpoint/safetensors.hpp"

namespace assay::impl::checkpoint {

/// The header alone is read. Errors: UserError(bad_data), as spec::safetensors::parse.
spec::safetensors::Header header_in(const InputFile& file);

}  // namespace assay::impl::checkpoint
