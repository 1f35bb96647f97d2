#include "spec/audit/readers/assay_steps.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "spec/error.hpp"
#include "spec/record/read.hpp"

namespace assay::spec::audit {
namespace {

/// `key` without its opening quote: lines are full of those, and looking for one of its letters is faster.
std::optional<double> number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" :"), text.size()));
  double number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

bool StepSchema::holds(const Line& line, KeyHash keys) {
  constexpr std::size_t most = 64;
  if (std::find(known_.begin(), known_.end(), keys.value) != known_.end()) return true;
  try {
    static_cast<void>(record::from_json(line.text, ""));
  } catch (const UserError& error) {
    if (!known_.empty()) return false;
    throw UserError(error.code(), "line " + std::to_string(line.number) + error.what());
  }
  if (known_.size() < most) known_.push_back(keys.value);
  return true;
}

void rule_out_numbers(const Line& line, RecordBuilder& builder) {
  struct Documented {
    const char *key, *name;
    double most;
  };
  constexpr Documented documented[] = {
      {"z_loss\"", "z_loss", std::numeric_limits<double>::infinity()},
      {"clip_coefficient\"", "clip_coefficient", 1},
  };
  for (const auto& [key, name, most] : documented) {
    const auto number = number_behind(line.text, key);
    if (number && (*number < 0 || *number > most)) builder.rule_out({name, *number, 0, most, line.number});
  }
}

}  // namespace assay::spec::audit
