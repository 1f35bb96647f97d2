#pragma once
// Files that hold no token ids, known by how they begin and end.
#include "impl/data/opened_file.hpp"

namespace assay::impl::data {

/// Errors: UserError bad_data for text, JSON, Parquet and other tables, compressed files, archives and
/// pickles: what it is and what to run next.
void refuse_foreign(const OpenedFile& file);

}  // namespace assay::impl::data
