#pragma once
// Rows of validations in tables that do not say what a row is of.
#include <cstdint>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// The rows of a table that are steps: without those behind or before a step that have its number, no loss
/// where it has one, and no other number that it lacks, if at most a quarter of the rows are such: trainers
/// validate now and then, and what is printed of it stands under the columns of the steps ("3000,,58000,7.9":
/// the speed and time of a validation). All rows, where more are. `left_out`: lines of those that are not.
std::vector<const Step*> without_validation_rows(const std::vector<const Step*>& rows,
                                                 std::vector<std::int64_t>& left_out);

}  // namespace assay::spec::audit
