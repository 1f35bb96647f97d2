#include "spec/memory/expert_load.hpp"

#include <algorithm>

#include "spec/ops/permute/permute.hpp"

namespace assay::spec::memory {

std::int64_t most_rows(const Setting& setting, std::int64_t N, bool drops) {
  const Experts& experts = *setting.model.experts;
  const std::int64_t here = experts.count / setting.expert_ranks, T = setting.sequence_length,
                     tokens = N * setting.expert_ranks, rows = tokens * std::min(experts.active, here);
  if (!drops) return rows;
  const permute::Shape sequence{.N = T, .A = experts.active, .X = experts.count};
  return std::min(rows, tokens / T * here * permute::capacity(sequence, setting.capacity));
}

double most_load(const Setting& setting) {
  if (setting.expert_ranks == 1) return 1;
  // A forward pass of validation, or of sampling, drops none.
  const bool all_drop = setting.capacity > 0 && setting.validation_batch == 0 && setting.sampled == 0;
  const std::int64_t N = setting.sequence_length;
  return static_cast<double>(most_rows(setting, N, all_drop)) /
         static_cast<double>(N * setting.model.experts->active);
}

}  // namespace assay::spec::memory
