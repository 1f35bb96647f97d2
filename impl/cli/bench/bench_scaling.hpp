#pragma once
// `assay bench scaling`: a recipe trained on several numbers of ranks, and what they bring.
#include "impl/cli/arguments.hpp"
#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"

namespace assay::impl::cli {

/// Options --ranks, --strong, --steps, --run, --json. Returns 1 where `assay audit` refuses a record or, in
/// strong scaling, steps differ by more than metrics::most_differences; 0 otherwise. Errors: UserError(usage)
/// for a batch that does not divide; that of a run that fails.
int bench_scaling(const Arguments& arguments, Streams streams);

/// "1,2,4" as numbers, in order, each once. Errors: UserError(usage).
std::vector<std::int64_t> ranks_list(const std::string& text);

}  // namespace assay::impl::cli
