#include "spec/memory/expert_load.hpp"

#include <algorithm>
#include <cmath>

#include "spec/ops/permute.hpp"
#include "spec/step/paper/run.hpp"

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

double load_that_fits(const Setting& setting, const Count& capacity) {
  const Share share = share_of(setting);
  const auto fits = [&](double load) {
    Setting other = setting;
    other.load = load;
    Ledger ledger;
    paper::walk(other, share, ledger);
    return ledger.peak() <= capacity;
  };
  const double most = most_load(setting);
  if (fits(most)) return most;
  std::int64_t low = 100, high = static_cast<std::int64_t>(std::floor(100 * most));  // in hundredths
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (fits(static_cast<double>(middle) / 100))
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<double>(low) / 100;
}

}  // namespace assay::spec::memory
