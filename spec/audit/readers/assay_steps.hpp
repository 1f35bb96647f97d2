#pragma once
// What spec/record/record.md says of a step event, beside the numbers that an audit takes: its fields, and
// what some of its numbers may be.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "spec/audit/readers/line_source.hpp"
#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit {

/// Stands for the keys of a line, in their order (FNV-1a).
struct KeyHash {
  std::uint64_t value = 14695981039346656037u;
  void add(std::string_view name, int depth) {
    constexpr std::uint64_t prime = 1099511628211u;
    for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * prime;
    value = (value ^ static_cast<std::uint64_t>(256 + depth)) * prime;
  }
};

/// The fields of step events.
class StepSchema {
 public:
  /// Whether the event in `line` has those of a step, all of them and no others. Lines of keys, and of texts
  /// and flags in the place of numbers, that were seen before are not read again. Errors: UserError with the
  /// line's number where none before had them either: then it is the whole record that is of another schema,
  /// and not one line that is damaged.
  bool holds(const Line& line, KeyHash keys);
  /// Whether a line has the keys of one that held, or none did yet.
  bool as_before(KeyHash keys) const {
    return known_.empty() || std::find(known_.begin(), known_.end(), keys.value) != known_.end();
  }

 private:
  std::vector<std::uint64_t> known_;
};

/// Hands the numbers of the step event in `line` that record.md rules out, and that no field of a Step takes,
/// to the builder.
void rule_out_numbers(const Line& line, RecordBuilder& builder);

}  // namespace assay::spec::audit
