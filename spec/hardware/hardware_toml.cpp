// From a fact file to a Gpu.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "spec/error.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec {
namespace {

using document::Item;
using document::Kind;

constexpr double tera = 1e12, giga = 1e9, gib = 1073741824.0;

std::string location(Item item) {
  const std::string path = item.path();
  return item.where() + ": " + (path.empty() ? "" : path + ": ");
}

std::optional<Item> table_in(Item table, std::string_view key) {
  const auto found = table.find(key);
  return found && found->is(Kind::object) ? found : std::nullopt;
}

/// Refuses what no reader of the file would see: a misspelt key is a fact lost.
void allow_only(Item table, std::initializer_list<std::string_view> known) {
  for (std::size_t i = 0; i < table.size(); ++i)
    // hardware_c1
    require(std::find(known.begin(), known.end(), table.key(i)) != known.end(), "hardware_c1",
            [&] { return table.where_key(i) + ": unknown key " + table.key(i); });
}

std::string text_of(Item table, std::string_view key) {
  const auto value = table.find(key);
  // hardware_c1
  require(value && value->is(Kind::text) && !value->text().empty(), "hardware_c1",
          [&] { return location(table) + "no text " + std::string(key); });
  return value->text();
}

/// The text, or an empty one when there is none.
std::string text_if_any(Item table, std::string_view key) {
  const auto value = table.find(key);
  return value ? value->text() : "";
}

double positive(Item table, std::string_view key) {
  const auto value = table.find(key);
  const bool number = value && (value->is(Kind::integer) || value->is(Kind::real));
  // hardware_c3
  require(number && std::isfinite(value->real()) && value->real() > 0, "hardware_c3",
          [&] { return location(table) + std::string(key) + " must be a positive number"; });
  return value->real();
}

std::vector<std::string> texts(Item table, std::string_view key) {
  std::vector<std::string> out;
  if (const auto list = table.find(key))
    for (std::size_t i = 0; i < list->size(); ++i) out.push_back((*list)[i].text());
  return out;
}

Source source_of(Item file, Item fact) {
  const std::string id = text_if_any(fact, "source");
  const auto sources = table_in(file, "source");
  const auto table = sources ? table_in(*sources, id) : std::nullopt;
  // hardware_c2
  require(table.has_value(), "hardware_c2", [&] { return location(fact) + "no source [" + id + "]"; });
  Source source{text_if_any(*table, "document"), text_if_any(*table, "url"), text_if_any(*table, "date")};
  // hardware_c2
  require(!source.document.empty() && !source.date.empty(), "hardware_c2",
          [&] { return location(*table) + "source [" + id + "] needs document and date"; });
  return source;
}

Peak peak_of(Item file, Item entry) {
  allow_only(entry, {"dense", "sparse", "rounded", "source", "note"});
  Peak peak;
  if (entry.find("sparse")) peak.sparse = positive(entry, "sparse") * tera;
  peak.dense_is_derived = peak.sparse && !entry.find("dense");
  peak.dense = peak.dense_is_derived ? *peak.sparse / 2 : positive(entry, "dense") * tera;
  if (entry.find("rounded")) peak.rounded = positive(entry, "rounded") * tera;
  peak.source = source_of(file, entry);
  peak.note = text_if_any(entry, "note");
  return peak;
}

std::optional<Fact> fact_of(Item file, std::string_view key, double unit) {
  const auto facts = table_in(file, "facts");
  const auto entry = facts ? table_in(*facts, key) : std::nullopt;
  if (!entry) return std::nullopt;
  allow_only(*entry, {"value", "source", "note", "system", "scope"});
  return Fact{positive(*entry, "value") * unit, source_of(file, *entry), text_if_any(*entry, "note"),
              text_if_any(*entry, "system"), text_if_any(*entry, "scope")};
}

}  // namespace

Gpu gpu_from_toml(std::string_view text, const std::string& origin) {
  const document::Source source{origin, ExitCode::usage, document::Format::toml};
  document::Node root;
  // hardware_c1
  if (const auto fault = read_toml(text, root))
    throw SpecError("hardware_c1", origin + ":" + std::to_string(fault->position.line) + ":" +
                                       std::to_string(fault->position.column) +
                                       ": not valid TOML: " + fault->why);
  const document::Tree tree(source, std::move(root));
  const Item file = tree.root();
  allow_only(file, {"name", "architecture", "sparsity", "names", "shared_names", "peak", "facts", "source"});
  Gpu gpu;
  gpu.name = text_of(file, "name");
  gpu.architecture = text_of(file, "architecture");
  const auto sparsity = file.find("sparsity");
  gpu.sparsity = sparsity && sparsity->boolean();
  gpu.names = texts(file, "names");
  gpu.shared_names = texts(file, "shared_names");
  if (const auto peaks = table_in(file, "peak"))
    for (std::size_t i = 0; i < peaks->size(); ++i) {
      const auto precision = precision_from(peaks->key(i));
      // hardware_c1
      require(precision && (*peaks)[i].is(Kind::object), "hardware_c1",
              [&] { return peaks->where_key(i) + ": peak " + peaks->key(i) + " is not a known precision"; });
      gpu.peaks.emplace(*precision, peak_of(file, (*peaks)[i]));
    }
  if (const auto facts = table_in(file, "facts"))
    allow_only(*facts, {"memory_gib", "memory_mounted_gib", "memory_gb_per_s", "nvlink_gb_per_s",
                        "host_gb_per_s", "network_gbit_per_s", "power_w"});
  gpu.memory = fact_of(file, "memory_gib", gib);
  gpu.memory_mounted = fact_of(file, "memory_mounted_gib", gib);
  gpu.memory_bandwidth = fact_of(file, "memory_gb_per_s", giga);
  gpu.nvlink = fact_of(file, "nvlink_gb_per_s", giga);
  gpu.host_link = fact_of(file, "host_gb_per_s", giga);
  gpu.network = fact_of(file, "network_gbit_per_s", giga);
  // hardware_c2
  require(!gpu.network || !gpu.network->system.empty(), "hardware_c2",
          [&] { return origin + ": network_gbit_per_s names no system; a GPU alone has no network"; });
  gpu.power = fact_of(file, "power_w", 1);
  for (const auto* fact :
       {&gpu.memory, &gpu.memory_mounted, &gpu.memory_bandwidth, &gpu.nvlink, &gpu.host_link, &gpu.network})
    // hardware_c1
    require(!*fact || (*fact)->scope.empty(), "hardware_c1",
            [&] { return origin + ": only power_w has a scope; the other facts are the GPU's"; });
  return gpu;
}

}  // namespace assay::spec
