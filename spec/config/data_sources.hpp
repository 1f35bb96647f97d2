#pragma once
// The sources of a mixture as settings: data.mixture, and the tables [[data.sources]] that stand for it and
// data.paths.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/text/document.hpp"

namespace assay::spec {

/// One source: some of data.paths, behind those of the sources before it.
struct DataSource {
  std::string name;         ///< letters, digits, '.', '_' and '-'
  std::int64_t weight = 0;  ///< in millionths, > 0
  std::int64_t files = 1;   ///< of data.paths, >= 1
  bool operator==(const DataSource&) const = default;
};

/// "web:0.7", or "web:0.7:3" for a source of three files.
std::string to_text(const DataSource& source);
/// The source that such a text says, or nothing: the weight is above 0, at most 1,000,000, and has no more
/// than six decimals.
std::optional<DataSource> data_source(std::string_view text);

struct SourceTables {
  std::vector<std::string> paths;
  std::vector<DataSource> sources;
};
/// Tables of `path` (a text, or a list of them), `weight` and `name` (of the first file, without its ending,
/// where it is not given). Errors: UserError(usage) with the place of what does not fit.
SourceTables source_tables(document::Item tables);

}  // namespace assay::spec
