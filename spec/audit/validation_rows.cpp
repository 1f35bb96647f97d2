#include "spec/audit/validation_rows.hpp"

#include <utility>

namespace assay::spec::audit {
namespace {

/// A row that holds what its step does not, but for a time, is the step's other half.
bool is_validation(const Step& step, const Step& row) {
  const auto &number = step[Field::step], &again = row[Field::step];
  if (!number || !again || number->value != again->value || !step[Field::loss] || row[Field::loss])
    return false;
  for (std::size_t i = 0; i < field_count; ++i)
    if (row.fields[i] && !step.fields[i] && static_cast<Field>(i) != Field::elapsed) return false;
  return true;
}

}  // namespace

std::vector<const Step*> without_validation_rows(const std::vector<const Step*>& rows,
                                                 std::vector<std::int64_t>& left_out) {
  std::vector<const Step*> out;
  std::vector<std::int64_t> lines;
  bool come_before = false;  // then the last one may have no step behind it
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool behind = !out.empty() && is_validation(*out.back(), *rows[i]), last = i + 1 == rows.size(),
               before =
                   last ? come_before && !(*rows[i])[Field::loss] : is_validation(*rows[i + 1], *rows[i]);
    come_before = come_before || before;
    if (behind || before)
      lines.push_back(rows[i]->line);
    else
      out.push_back(rows[i]);
  }
  if (4 * lines.size() > rows.size()) return rows;
  left_out = std::move(lines);
  return out;
}

}  // namespace assay::spec::audit
