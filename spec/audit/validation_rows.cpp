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
  for (const Step* row : rows)
    if (out.empty() || !is_validation(*out.back(), *row)) out.push_back(row);
  return 4 * (rows.size() - out.size()) <= rows.size() ? out : rows;
}

}  // namespace assay::spec::audit
