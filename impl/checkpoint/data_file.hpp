#pragma once
// A file by its content.
#include <string>

#include "impl/data/data_file.hpp"

namespace assay::impl::checkpoint {

using data::DataFile;

/// Any file, of no format, by spec::sample_hash. Errors: InputFile::Unreadable.
DataFile data_file(const std::string& path);

}  // namespace assay::impl::checkpoint
