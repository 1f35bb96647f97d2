#pragma once
// FLOPs per token as each named convention counts them, for the model and sequence length of a log.
#include <string>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

struct CountedFlops {
  std::string convention;  ///< "exact", "palm_total"
  Interval flops{0, 0};    ///< per token [flop]
};

/// Those that the log's model (or, for palm_total, its printed parameters, layers and width) allows.
std::vector<CountedFlops> counted_flops(const Evidence& evidence);

/// From the least to the most that any of them counts; nothing when none is allowed.
std::optional<Interval> any_convention(const Evidence& evidence);

/// Of one convention; nothing when the log does not say enough.
std::optional<Interval> counted_flops(const Evidence& evidence, std::string_view convention);

/// Where a trainer divides each product's FLOPs by the peak of the dtype that computes it
/// (Trainer::peak_of_each_product): the FLOPs that take as long at the peak of `Evidence::precision` as all
/// of `flops`, which that trainer counts of a token [flop]. `flops` itself elsewhere; nothing where either
/// peak is unknown. Source: IST-DASLab/llmq@b77d969, sol.cpp (get_transformer_ops, estimate_speed_of_light).
std::optional<Interval> flops_at_one_peak(const Evidence& evidence, const std::optional<Interval>& flops);

/// Mistakes in counting FLOPs, as factors on the count of `convention`.
struct Miscount {
  std::string id, text;
  double factor;
};
std::vector<Miscount> miscounts(const Evidence& evidence, std::string_view convention);

}  // namespace assay::spec::audit
