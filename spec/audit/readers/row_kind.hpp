#pragma once
// Columns that say what a row of a table is of: training or validation.
#include <string>
#include <string_view>

namespace assay::spec::audit {

/// Whether a column's name is one under which tables say what a row is of: split, subset, set, dataset,
/// partition, phase, mode, stage, kind, type, event, in letters of any case.
bool is_row_kind(std::string_view column);

/// Whether `value` in such a column says that the row is of a validation, and so no step: val, valid,
/// validate, validation, eval, evaluate, evaluation, holdout and the like, of data test and dev too; behind
/// such a word others may stand ("test_en").
bool is_of_validation(std::string_view column, std::string_view value);

/// Of a table without any step, whose rows all say that they are of validations.
/// Errors: UserError(bad_data), always.
[[noreturn]] void refuse_validations_alone(const std::string& column, const std::string& value);

}  // namespace assay::spec::audit
