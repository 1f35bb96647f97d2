#pragma once
// Columns that say what a row of a table is of: training or validation.
#include <string_view>

namespace assay::spec::audit {

/// Whether a column's name is one under which tables say what a row is of: split, subset, set, dataset,
/// partition, phase, mode, stage, kind, type, event, in letters of any case.
bool is_row_kind(std::string_view column);

/// Whether `value` in such a column says that the row is of a validation, and so no step: val, valid,
/// validate, validation, eval, evaluate, evaluation, test, holdout and the like, of data dev too; behind such
/// a word others may stand ("test_en").
bool is_of_validation(std::string_view column, std::string_view value);

}  // namespace assay::spec::audit
