#pragma once
// What the first loss needs to know of a batch: how often ids and (input, target) pairs repeat.
#include <cstdint>
#include <span>

namespace assay::spec {

/// Shares and collision probabilities over the N positions whose target counts. With p_iy the share of
/// positions whose input is i and whose target is y, p_i and q_y its marginals; every sum runs over the
/// vocabulary. A collision probability includes the position with itself, so that each is >= 1/N in a real
/// batch. Dimensionless but N, T.
struct TokenStatistics {
  std::int64_t tokens = 0;           ///< N, valid targets of the optimizer step, all ranks and micro-batches
  std::int64_t sequence_length = 0;  ///< T [tokens]
  double input_collision = 0;        ///< sum_i p_i^2
  double target_collision = 0;       ///< sum_y q_y^2
  double pair_collision = 0;         ///< sum_iy p_iy^2
  double reverse_collision = 0;      ///< sum_iy p_iy p_yi
  double repeat_share = 0;           ///< sum_v p_vv: targets that equal their input
  double repeat_collision = 0;       ///< sum_v p_vv^2
};

/// Counts a batch: `inputs` and `targets` hold its sequences one behind the other. Positions with target
/// `ignore_index` are left out.
/// Errors: SpecError token_statistics_c1 (sizes differ, or are not a positive multiple of sequence_length),
/// token_statistics_c2 (no valid target).
TokenStatistics token_statistics(std::span<const std::int64_t> inputs, std::span<const std::int64_t> targets,
                                 std::int64_t sequence_length, std::int64_t ignore_index = -100);

/// Expected statistics of N independent uniform draws from `vocab` ids.
/// Errors: SpecError token_statistics_c3 (an argument below 1).
TokenStatistics uniform_tokens(std::int64_t vocab, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace assay::spec
