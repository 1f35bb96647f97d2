#pragma once
// Single mistakes that a printed number may hold, each with the factor by which it moves every relation. A
// reading is a small set of them (spec/audit/hypotheses.hpp).
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/interpretation.hpp"

namespace assay::spec::audit {

struct Change {
  std::string id;    ///< "peak_sparse"
  std::string text;  ///< "the peak is the sparse one"
  /// How unusual it is taken to be; adds up over a reading. Chosen, not measured: an order from what trainers
  /// are known to do over what a single run may have wrong to what fits anything (spec/audit/audit.md).
  double cost = 0;
  Factors factors;                        ///< printed / recomputed
  bool of_printer = true;                 ///< the trainer does so in every run; else of this run alone
  std::vector<std::string> alternatives;  ///< other mistakes that no number of this log tells from this one
  std::vector<std::string> alternative_ids;  ///< of the same
  // What it corrects:
  double rate = 1;                                ///< true tokens/s of all GPUs / as read
  Interval rate_within{1, 1};                     ///< what roundings leave open of that, / rate
  double batch = 1;                               ///< true tokens per step / as stated
  double time = 1;                                ///< true step time / printed
  double gpus = 1;                                ///< true GPUs / printed
  std::optional<ModelSpec> model = std::nullopt;  ///< that ran in place of the stated one
  bool shape_unknown = false;                     ///< neither the stated model ran, nor one that is known
  double sequence_length = 0;                     ///< of what ran; 0: as stated [tokens]
};

/// The change that a trainer's source is known to make, if any: the reading without it costs
/// `unknown_of_known` more. Likelier, not certain: versions differ.
std::string_view known_of_trainer(const Evidence& evidence);
constexpr double unknown_of_known = 0.9;

/// Changes with fixed factors, for a log read in that way.
std::vector<Change> changes(const Evidence& evidence, const Comparisons& comparisons,
                            const Interpretation& interpretation);

/// Changes with a free number (GPUs, accumulation, length, a share) that bring `relation` to `residual`, the
/// interval of printed / recomputed that is left to explain; `factors` is what the reading so far explains.
std::vector<Change> solved(const Evidence& evidence, const Comparisons& comparisons,
                           const Interpretation& interpretation, const Factors& factors, Relation relation,
                           Interval residual);

/// The median of a relation's ratios, low ends and high ends apart.
Interval median_ratio(const Comparison& comparison);

/// The median of the ratios of the numbers as printed, or of the middles.
double likely_ratio(const Comparison& comparison);

/// The last resort: `relation` stays unexplained.
Change unknown(Relation relation);

}  // namespace assay::spec::audit
