#include "spec/audit/validation_rows.hpp"

namespace assay::spec::audit {
namespace {

bool is_validation(const Step& step, const Step& row) {
  const auto &number = step[Field::step], &again = row[Field::step];
  return number && again && number->value == again->value && step[Field::loss] && !row[Field::loss];
}

}  // namespace

std::vector<const Step*> without_validation_rows(const std::vector<const Step*>& rows) {
  std::vector<const Step*> out;
  bool come_before = false;  // then the last one may have no step behind it
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool behind = !out.empty() && is_validation(*out.back(), *rows[i]), last = i + 1 == rows.size(),
               before =
                   last ? come_before && !(*rows[i])[Field::loss] : is_validation(*rows[i + 1], *rows[i]);
    come_before = come_before || before;
    if (!behind && !before) out.push_back(rows[i]);
  }
  return 4 * (rows.size() - out.size()) <= rows.size() ? out : rows;
}

}  // namespace assay::spec::audit
