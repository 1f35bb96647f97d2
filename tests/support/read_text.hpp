#pragma once
// A log in a string, read as `assay audit` reads a file.
#include <sstream>
#include <string>

#include "spec/audit/readers/read_log.hpp"

namespace assay::tests {

/// `set` and `map` as --set and --map give them. Errors: UserError, as spec::audit::read_log.
inline spec::audit::RunRecord read_text(const std::string& text, const std::string& set = "",
                                        const std::string& map = "") {
  std::istringstream in(text);
  spec::audit::ReadOptions options;
  options.set = set;
  options.map = map;
  return spec::audit::read_log(in, "a log", options);
}

inline spec::audit::RunRecord read_mapped(const std::string& text, const std::string& map = "") {
  return read_text(text, "", map);
}

}  // namespace assay::tests
