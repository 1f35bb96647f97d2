#include "spec/model/nominal.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace assay::spec {
namespace {

/// "1.3b" or "125M", the whole of `part`.
std::optional<double> size_in(std::string_view part) {
  if (part.size() < 2) return std::nullopt;
  const char letter = part.back();
  const bool billions = letter == 'b' || letter == 'B', millions = letter == 'm' || letter == 'M';
  if (!billions && !millions) return std::nullopt;
  double value = 0;
  const char* const end = part.data() + part.size() - 1;
  const auto [at, error] = std::from_chars(part.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || at != end || !(value > 0)) return std::nullopt;
  return value * (billions ? 1e9 : 1e6);
}

}  // namespace

std::optional<double> nominal_parameters(std::string_view name) {
  std::optional<double> largest;
  while (!name.empty()) {
    const std::size_t end = name.find_first_of("-_");
    largest = std::max(largest, size_in(name.substr(0, end)));
    name.remove_prefix(end == std::string_view::npos ? name.size() : end + 1);
  }
  return largest;
}

std::optional<double> misnamed(const ModelSpec& model) {
  const auto nominal = nominal_parameters(model.name);
  if (!nominal || std::abs(parameter_count(model).to_double() - *nominal) <= nominal_tolerance * *nominal)
    return std::nullopt;
  return nominal;
}

}  // namespace assay::spec
