#pragma once
// The header of NumPy's .npy files.
#include <optional>

#include "impl/data/token_format.hpp"

namespace assay::impl::data {

/// Nothing where the file does not begin as a .npy. Errors: UserError bad_data for a header that is torn or
/// not of one row of little-endian integers, with what to write instead.
std::optional<TokenFormat> npy_header(const OpenedFile& file);

}  // namespace assay::impl::data
