#pragma once
// One entry of each function of visits.hpp, as the CPU's loops and the GPU's threads both compute it.
#include <cstdint>

#ifdef __CUDACC__
#define ASSAY_HOST_DEVICE __host__ __device__
#else
#define ASSAY_HOST_DEVICE
#endif

namespace assay::impl::permute::rules {

/// Pointers of Choices. `rows` may be null.
struct ChoiceView {
  const std::int32_t *experts, *rows;
  std::int64_t N, A, ranks, each;

  /// The rank of choice s = n A + a; -1 where it was dropped.
  ASSAY_HOST_DEVICE std::int64_t rank(std::int64_t s) const {
    return rows && rows[s] < 0 ? -1 : experts[s] / each;
  }
  /// r where token n visits rank r, else -1.
  ASSAY_HOST_DEVICE std::int32_t visited(std::int64_t n, std::int64_t r) const {
    for (std::int64_t a = 0; a < A; ++a)
      if (rank(n * A + a) == r) return static_cast<std::int32_t>(r);
    return -1;
  }
  /// The number that choice s has on rank r; -1 where it is another's.
  ASSAY_HOST_DEVICE std::int32_t there(std::int64_t s, std::int64_t r) const {
    return rank(s) == r ? static_cast<std::int32_t>(experts[s] - r * each) : -1;
  }
};

/// Tokens, and choices, that are for rank r.
ASSAY_HOST_DEVICE inline void count_visits(const std::int32_t* visit_ends, const std::int32_t* expert_ends,
                                           std::int64_t each, std::int64_t r, std::int32_t* counts) {
  counts[2 * r] = visit_ends[r] - (r > 0 ? visit_ends[r - 1] : 0);
  counts[2 * r + 1] = expert_ends[(r + 1) * each - 1] - (r > 0 ? expert_ends[r * each - 1] : 0);
}

/// Entry a of a visit's row: the weight's words, and behind all weights the expert.
template <int words>
ASSAY_HOST_DEVICE void pack(const ChoiceView& of, const std::int32_t* weights, std::int32_t slot,
                            std::int64_t a, std::int32_t* row) {
  const std::int64_t s = slot / of.ranks * of.A + a;
  for (int word = 0; word < words; ++word) row[a * words + word] = weights[s * words + word];
  row[of.A * words + a] = of.there(s, slot % of.ranks);
}

template <int words>
ASSAY_HOST_DEVICE void unpack(const std::int32_t* row, std::int64_t A, std::int64_t a, std::int32_t* weight,
                              std::int32_t* expert) {
  for (int word = 0; word < words; ++word) weight[word] = row[a * words + word];
  *expert = row[A * words + a];
}

/// Choice s = n A + a of what came back; `visits` [N, e] are rows of by_rank.
template <class M>
ASSAY_HOST_DEVICE M by_choice(const ChoiceView& of, const std::int32_t* visits, const M* of_visits,
                              std::int64_t s) {
  const std::int64_t r = of.rank(s);
  return r < 0 ? M(0) : of_visits[visits[s / of.A * of.ranks + r] * of.A + s % of.A];
}

}  // namespace assay::impl::permute::rules
