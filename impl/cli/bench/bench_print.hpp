#pragma once
// Tables and JSON of what `assay bench` measured.
#include <ostream>
#include <string>
#include <vector>

#include "impl/bench/results.hpp"

namespace assay::impl::cli {

/// "llama-1.36b, 24 x 2,048 tokens a micro-batch, bf16, on NVIDIA H200: 989.5 TFLOP/s dense, 5.15 TB/s by its
/// data sheet"; says so where peak and bandwidth are not known.
std::string bench_heading(const bench::Subject& subject);

/// Heading of the columns, and one row under it. With `in_step` also calls and milliseconds of a step.
std::string bench_columns(const bench::Subject& subject, bool in_step);
std::string bench_row(const bench::Row& row, const bench::Subject& subject, bool in_step);

/// Sums of a step by class of op, and all of them.
std::string bench_sums(const std::vector<bench::Row>& rows);

/// Bars of a step from peak to achieved MFU (or shares of the step, where the peak is not known), then every
/// op beside its roofline, then the check of the sum.
std::string step_table(const bench::StepTimes& times);

/// One JSON object with the "schema" "assay.bench.<what>/1"; units are in the names of the members.
std::string rows_json(const std::string& what, const bench::Subject& subject,
                      const std::vector<bench::Row>& rows);
std::string step_json(const bench::StepTimes& times);

}  // namespace assay::impl::cli
