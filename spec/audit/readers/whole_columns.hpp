#pragma once
// Columns of tables whose numbers were rounded to whole ones and written with a decimal.
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// In a table (CSV or JSON lines, mapped) a rate (tokens/s, FLOP/s) that ends in ".0" in every step was
/// rounded to whole units, as Python's round(x, 0) and the writers of data frames leave it: 144990.0 then
/// stands for 144,989.5 to 144,990.5, not for a tenth of that. Of numbers printed to a tenth one of 10^n
/// columns of n steps looks so; its numbers are held less closely then.
void widen_whole_columns(RunRecord& run);

}  // namespace assay::spec::audit
