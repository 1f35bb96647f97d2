#include "spec/config/data_sources.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "spec/text/amount.hpp"

namespace assay::spec {
namespace {

constexpr std::int64_t kOne = 1'000'000;      // of a weight, in millionths
constexpr double largest_weight = 1'000'000;  // more would be no exact number of millionths
constexpr std::int64_t most_files = 1'000'000;

bool is_source_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](const char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

/// In millionths, where the number is one.
std::optional<std::int64_t> weight_of(double number) {
  constexpr double rounding = 1e-3;  // of 1e12 millionths as a double
  if (!(number > 0) || number > largest_weight) return {};
  const double millionths = number * static_cast<double>(kOne), whole = std::round(millionths);
  if (whole < 1 || std::abs(millionths - whole) > rounding) return {};
  return static_cast<std::int64_t>(whole);
}

std::string stem_of(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  std::string stem = file.substr(0, file.rfind('.') == 0 ? std::string::npos : file.rfind('.'));
  for (char& c : stem)
    if (!is_source_name(std::string_view(&c, 1))) c = '_';
  return stem.empty() ? "source" : stem;
}

std::vector<std::string> paths_of(const document::Item& path) {
  std::vector<std::string> paths;
  if (path.is(document::Kind::text)) paths.push_back(path.text());
  if (path.is(document::Kind::list))
    for (std::size_t i = 0; i < path.size(); ++i) paths.push_back(path[i].text());
  if (paths.empty() || std::ranges::count(paths, "") > 0)
    path.wrong("a file of token ids, or a list of files");
  return paths;
}

DataSource source_in(const document::Item& table, const std::vector<std::string>& paths) {
  const document::Item weight = table.at("weight", "say how much of the training data is of this source");
  DataSource source{
      .name = stem_of(paths.front()), .weight = 0, .files = static_cast<std::int64_t>(paths.size())};
  if (const auto millionths = weight_of(weight.real()))
    source.weight = *millionths;
  else
    weight.wrong("above 0, at most 1000000, with no more than six decimals");
  const auto name = table.find("name");
  if (name) source.name = name->text();
  if (!is_source_name(source.name)) name->wrong("of letters, digits, \".\", \"_\" and \"-\"");
  return source;
}

}  // namespace

std::string to_text(const DataSource& source) {
  std::string weight = std::to_string(source.weight % kOne);
  weight = std::string(6 - weight.size(), '0') + weight;
  while (!weight.empty() && weight.back() == '0') weight.pop_back();
  return source.name + ":" + std::to_string(source.weight / kOne) + (weight.empty() ? "" : "." + weight) +
         (source.files == 1 ? "" : ":" + std::to_string(source.files));
}

std::optional<DataSource> data_source(std::string_view text) {
  const std::size_t first = text.find(':'), second = text.find(':', first == text.npos ? first : first + 1);
  if (first == text.npos) return {};
  const auto number = real_number(text.substr(first + 1, second == text.npos ? second : second - first - 1));
  const auto weight = number ? weight_of(*number) : std::nullopt;
  const auto files =
      second == text.npos ? std::optional<std::int64_t>(1) : whole_number(text.substr(second + 1));
  const std::string_view name = text.substr(0, first);
  if (!is_source_name(name) || !weight || !files || *files < 1 || *files > most_files) return {};
  return DataSource{.name = std::string(name), .weight = *weight, .files = *files};
}

SourceTables source_tables(document::Item tables) {
  SourceTables all;
  if (tables.size() == 0) tables.wrong("tables, each [[data.sources]] with path, weight and name");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    tables[i].allow_only({"path", "weight", "name"});
    const std::vector<std::string> paths =
        paths_of(tables[i].at("path", "name the source's file of token ids"));
    all.sources.push_back(source_in(tables[i], paths));
    all.paths.insert(all.paths.end(), paths.begin(), paths.end());
  }
  return all;
}

}  // namespace assay::spec
