#pragma once
// The loss that an untrained model must show on its first step, and how far chance may move it.
// Derivation and validation: spec/model/initial_loss.md.
#include <cstdint>
#include <string>

#include "spec/model/model_spec.hpp"
#include "spec/model/token_statistics.hpp"

namespace assay::spec {

/// Over the random initial weights, for a given batch. [nat]
struct InitialLoss {
  double mean = 0;
  double standard_deviation = 0;
  /// How many standard deviations a measured loss lies from the mean (signed). Beyond 4 something is wrong:
  /// the initial weights, the vocabulary, the targets (shifted by none or two), or a model that is not
  /// untrained.
  double deviations(double loss) const { return (loss - mean) / standard_deviation; }
};

/// Why nothing is derived for the model, "a mixture of experts"; empty where the expectation is stated.
std::string without_initial_loss(const ModelSpec& model);

/// For a batch whose ids were counted. This is what a trainer compares its first loss with.
/// Errors: SpecError model_c1.. as `check`; initial_loss_c1 (tokens or sequence_length below 1),
/// initial_loss_c2 (a share or collision probability outside [0, 1]), initial_loss_c3 (a model for which
/// nothing is derived: the derivation follows the blocks of a Llama).
InitialLoss expected_initial_loss(const ModelSpec& model, const TokenStatistics& batch);

/// For a batch of which only the size is known: `valid_tokens` ids drawn uniformly, in sequences of the
/// model's context. Real text repeats itself; its standard deviation is larger. Errors: as above,
/// token_statistics_c3.
InitialLoss expected_initial_loss(const ModelSpec& model, std::int64_t valid_tokens);

}  // namespace assay::spec
