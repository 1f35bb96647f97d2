#pragma once
// The TOML fact files of spec/models and spec/hardware, built into the library.
#include <string_view>
#include <vector>

namespace assay::spec {

struct FactFile {
  std::string_view path;  ///< relative to the repository, e.g. "spec/models/llama3-8b.toml"
  std::string_view text;
};

/// All fact files, ordered by path.
const std::vector<FactFile>& fact_files();

}  // namespace assay::spec
