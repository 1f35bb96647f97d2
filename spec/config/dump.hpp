#pragma once
// Settings as text: a complete recipe, and the documentation's table.
#include <string>

#include "spec/config/run_config.hpp"

namespace assay::spec {

/// A recipe with every setting, its meaning, unit and range as comments. Loading it gives `config` again, bit
/// for bit. Settings that this run does not read are written as comments. Domain: check(config) holds.
std::string dump_toml(const RunConfig& config);

/// docs/configuration.md: the table of keys with types, defaults, ranges and meanings.
std::string keys_markdown();

}  // namespace assay::spec
