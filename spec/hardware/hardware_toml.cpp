// From a fact file to a Gpu.
#include <toml++/toml.h>

#include <cmath>
#include <set>

#include "spec/error.hpp"
#include "spec/hardware/hardware.hpp"

namespace assay::spec {
namespace {

constexpr double tera = 1e12, giga = 1e9, gib = 1073741824.0;

/// Refuses what no reader of the file would see: a misspelt key is a fact lost.
void allow_only(const toml::table& table, const std::set<std::string_view>& known, const std::string& where) {
  for (const auto& [key, node] : table)
    // hardware_c1
    require(known.contains(key.str()), "hardware_c1",
            [&] { return where + ": unknown key " + std::string(key.str()); });
}

std::string text_of(const toml::table& table, std::string_view key, const std::string& where) {
  const auto value = table[key].value<std::string>();
  // hardware_c1
  require(value && !value->empty(), "hardware_c1", [&] { return where + ": no text " + std::string(key); });
  return *value;
}

double positive(const toml::table& table, std::string_view key, const std::string& where) {
  const auto value = table[key].value<double>();
  // hardware_c3
  require(value && std::isfinite(*value) && *value > 0, "hardware_c3",
          [&] { return where + ": " + std::string(key) + " must be a positive number"; });
  return *value;
}

std::vector<std::string> strings(const toml::table& table, std::string_view key) {
  std::vector<std::string> out;
  if (const toml::array* list = table[key].as_array())
    for (const toml::node& node : *list) out.push_back(node.value_or(std::string()));
  return out;
}

Source source_of(const toml::table& file, const toml::table& fact, const std::string& where) {
  const std::string id = fact["source"].value_or(std::string());
  const toml::table* table = file["source"][id].as_table();
  // hardware_c2
  require(table != nullptr, "hardware_c2", [&] { return where + ": no source [" + id + "]"; });
  const Source source{(*table)["document"].value_or(std::string()), (*table)["url"].value_or(std::string()),
                      (*table)["date"].value_or(std::string())};
  // hardware_c2
  require(!source.document.empty() && !source.date.empty(), "hardware_c2",
          [&] { return where + ": source [" + id + "] needs document and date"; });
  return source;
}

Peak peak_of(const toml::table& file, const toml::table& entry, const std::string& where) {
  allow_only(entry, {"dense", "sparse", "source", "note"}, where);
  Peak peak;
  if (entry.contains("sparse")) peak.sparse = positive(entry, "sparse", where) * tera;
  peak.dense_is_derived = peak.sparse && !entry.contains("dense");
  peak.dense = peak.dense_is_derived ? *peak.sparse / 2 : positive(entry, "dense", where) * tera;
  peak.source = source_of(file, entry, where);
  peak.note = entry["note"].value_or(std::string());
  return peak;
}

std::optional<Fact> fact_of(const toml::table& file, std::string_view key, double unit,
                            const std::string& origin) {
  const toml::table* entry = file["facts"][key].as_table();
  if (!entry) return std::nullopt;
  const std::string where = origin + ": " + std::string(key);
  allow_only(*entry, {"value", "source", "note"}, where);
  return Fact{positive(*entry, "value", where) * unit, source_of(file, *entry, where),
              (*entry)["note"].value_or(std::string())};
}

}  // namespace

Gpu gpu_from_toml(std::string_view text, const std::string& origin) {
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw SpecError("hardware_c1", origin + ": not TOML: " + std::string(error.description()));
  }
  allow_only(file, {"name", "architecture", "sparsity", "names", "shared_names", "peak", "facts", "source"},
             origin);
  Gpu gpu;
  gpu.name = text_of(file, "name", origin);
  gpu.architecture = text_of(file, "architecture", origin);
  gpu.sparsity = file["sparsity"].value_or(false);
  gpu.names = strings(file, "names");
  gpu.shared_names = strings(file, "shared_names");
  if (const toml::table* peaks = file["peak"].as_table())
    for (const auto& [key, node] : *peaks) {
      const std::string where = origin + ": peak " + std::string(key.str());
      const auto precision = precision_from(key.str());
      // hardware_c1
      require(precision && node.is_table(), "hardware_c1",
              [&] { return where + " is not a known precision"; });
      gpu.peaks.emplace(*precision, peak_of(file, *node.as_table(), where));
    }
  if (const toml::table* facts = file["facts"].as_table())
    allow_only(*facts, {"memory_gib", "memory_gb_per_s", "nvlink_gb_per_s", "host_gb_per_s", "power_w"},
               origin);
  gpu.memory = fact_of(file, "memory_gib", gib, origin);
  gpu.memory_bandwidth = fact_of(file, "memory_gb_per_s", giga, origin);
  gpu.nvlink = fact_of(file, "nvlink_gb_per_s", giga, origin);
  gpu.host_link = fact_of(file, "host_gb_per_s", giga, origin);
  gpu.power = fact_of(file, "power_w", 1, origin);
  return gpu;
}

}  // namespace assay::spec
