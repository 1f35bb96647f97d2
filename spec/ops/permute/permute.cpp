#include "spec/ops/permute/permute.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::permute {

namespace {
void check_shape(const Shape& s) {
  // permute_c1
  require(s.N >= 0 && s.A >= 1 && s.A <= s.X, "permute_c1", [&] {
    return "N=" + std::to_string(s.N) + ", A=" + std::to_string(s.A) + ", X=" + std::to_string(s.X);
  });
}

void check_factor(double factor) {
  // permute_c3
  require(std::isfinite(factor) && factor > 0, "permute_c3",
          [&] { return "capacity factor " + std::to_string(factor); });
}
}  // namespace

std::int64_t capacity(const Shape& s, double factor) {
  check_shape(s);
  check_factor(factor);
  // No expert is visited twice by a token, so N rows are all that there can be.
  const double rows = std::ceil(factor * static_cast<double>(s.N * s.A) / static_cast<double>(s.X));
  return rows < static_cast<double>(s.N) ? static_cast<std::int64_t>(rows) : s.N;
}

void check(const Shape& s, std::span<const std::int64_t> chosen, std::optional<double> capacity_factor) {
  check_shape(s);
  // permute_c2
  require(static_cast<std::int64_t>(chosen.size()) == s.N * s.A, "permute_c2",
          [&] { return std::to_string(chosen.size()) + " choices, not N A=" + std::to_string(s.N * s.A); });
  for (std::size_t i = 0; i < chosen.size(); ++i)
    // permute_c2
    require(chosen[i] >= 0 && chosen[i] < s.X, "permute_c2", [&] {
      return "expert " + std::to_string(chosen[i]) + " at " + std::to_string(i) +
             " is not in [0, X=" + std::to_string(s.X) + ")";
    });
  if (capacity_factor) check_factor(*capacity_factor);
}

void check_groups(std::int64_t N, std::int64_t groups) {
  // permute_c5
  require(groups >= 1 && N % groups == 0, "permute_c5",
          [&] { return std::to_string(groups) + " groups of N=" + std::to_string(N) + " tokens"; });
}

void check_entries(const char* what, std::int64_t entries, std::int64_t due, std::int64_t D) {
  // permute_c1
  require(D >= 1, "permute_c1", [&] { return "D=" + std::to_string(D); });
  // permute_c4
  require(entries == due, "permute_c4", [&] {
    return std::string(what) + " has " + std::to_string(entries) + " entries, not " + std::to_string(due);
  });
}

Flops backward_flops(std::int64_t R, std::int64_t D) { return {0, Count(R) * D}; }
Flops unpermute_forward_flops(std::int64_t R, std::int64_t D) { return {0, 2 * Count(R) * D}; }
Flops unpermute_backward_flops(std::int64_t R, std::int64_t D) { return {0, 3 * Count(R) * D}; }

Count forward_bytes(std::int64_t N, std::int64_t R, std::int64_t D, std::int64_t element) {
  return (Count(N) + R) * D * element;
}

Count unpermute_forward_bytes(const Shape& s, std::int64_t R, std::int64_t D, std::int64_t element,
                              std::int64_t statistic) {
  return (Count(s.N) + R) * D * element + Count(s.N) * s.A * statistic;
}

Count unpermute_backward_bytes(const Shape& s, std::int64_t R, std::int64_t D, std::int64_t element,
                               std::int64_t statistic) {
  return (Count(s.N) + 2 * Count(R)) * D * element + 2 * Count(s.N) * s.A * statistic;
}

}  // namespace assay::spec::permute
