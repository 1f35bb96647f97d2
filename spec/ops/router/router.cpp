#include "spec/ops/router/router.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::router {

namespace {
bool possible(const Experts& e) {
  const bool grouped = e.groups >= 1 && e.count % e.groups == 0 &&
                       (e.groups == 1 || e.count / e.groups >= 2) && e.active_groups >= 1 &&
                       e.active_groups <= e.groups;
  return e.count >= 1 && e.active >= 1 && grouped && e.active <= e.active_groups * (e.count / e.groups) &&
         std::isfinite(e.scaling_factor) && e.scaling_factor > 0;
}
}  // namespace

void check(const Shape& shape, const Experts& e, std::int64_t weight_rows, std::int64_t weight_entries,
           std::int64_t bias_entries) {
  // router_c2
  require(shape.N >= 0 && shape.D >= 1 && possible(e), "router_c2", [&] {
    return "N=" + std::to_string(shape.N) + ", D=" + std::to_string(shape.D) +
           ", experts: count=" + std::to_string(e.count) + ", active=" + std::to_string(e.active) +
           ", groups=" + std::to_string(e.groups) + ", active_groups=" + std::to_string(e.active_groups) +
           ", scaling_factor=" + std::to_string(e.scaling_factor);
  });
  // router_c1
  require(weight_rows == e.count && weight_entries == shape.D, "router_c1", [&] {
    return "weight is [" + std::to_string(weight_rows) + ", " + std::to_string(weight_entries) +
           "], not [X=" + std::to_string(e.count) + ", D=" + std::to_string(shape.D) + "]";
  });
  // router_c3
  require(bias_entries == (e.router_bias ? e.count : 0), "router_c3", [&] {
    return "bias has " + std::to_string(bias_entries) + " entries, with X=" + std::to_string(e.count) +
           " and router_bias=" + (e.router_bias ? "true" : "false");
  });
}

void check_upstream(const Shape& shape, const Experts& e, std::int64_t dweight_entries,
                    std::int64_t dp_entries, std::int64_t dl_entries) {
  const std::int64_t all = shape.N * e.count;
  // router_c4
  require(dweight_entries == shape.N * e.active && (dp_entries == 0 || dp_entries == all) &&
              (dl_entries == 0 || dl_entries == all),
          "router_c4", [&] {
            return "gradients of weights, probabilities and logits have " + std::to_string(dweight_entries) +
                   ", " + std::to_string(dp_entries) + " and " + std::to_string(dl_entries) +
                   " entries, with N=" + std::to_string(shape.N) + ", A=" + std::to_string(e.active) +
                   ", X=" + std::to_string(e.count);
          });
}

Flops forward_flops(const Shape& s, const Experts& e) {
  const Count X = e.count, A = e.active;
  // softmax: subtract, exp, sum, divide; sigmoid: exp, 1 +, divide.
  Count row = (e.scoring == Scoring::softmax ? 4 : 3) * X;
  if (e.router_bias) row += X;
  if (e.groups > 1) row += e.groups;     // the sum of the two best
  if (e.renormalised) row += 2 * A + 1;  // sum, tiny, divide
  row += A;                              // scaling
  return {2 * Count(s.N) * X * s.D, Count(s.N) * row};
}

Flops probabilities_flops(std::int64_t N, const Experts& e) {
  return {0, e.scoring == Scoring::sigmoid ? Count(N) * (2 * Count(e.count) + 1) : Count(0)};
}

Flops backward_flops(const Shape& s, const Experts& e, Auxiliary auxiliary) {
  const Count X = e.count, A = e.active;
  const bool softmax = e.scoring == Scoring::softmax;
  Count row = 2 * A;                 // scaling, into ds
  if (e.renormalised) row += 4 * A;  // sum 2, subtract, divide
  // softmax: sum 2, subtract, product; sigmoid: 1 - s, two products.
  row += (softmax ? 4 : 3) * X;
  // Of sigmoids the sum over p 2, subtract, divide, add; and p itself.
  if (auxiliary.probabilities) row += (softmax ? 1 : 5) * X;
  if (auxiliary.logits) row += X;
  Flops flops{4 * Count(s.N) * X * s.D, Count(s.N) * row};
  if (auxiliary.probabilities) flops.vector += probabilities_flops(s.N, e).vector;
  return flops;
}

Count forward_bytes(const Shape& s, const Experts& e, std::int64_t element, std::int64_t statistic,
                    std::int64_t id) {
  const Count N = s.N, X = e.count, A = e.active;
  const Count bias = e.router_bias ? X : Count(0);
  return (N * s.D + X * s.D) * element + (bias + N * X + N * A) * statistic + N * A * id;
}

Count backward_bytes(const Shape& s, const Experts& e, Auxiliary auxiliary, std::int64_t element,
                     std::int64_t statistic, std::int64_t id, std::int64_t gradient) {
  const Count N = s.N, X = e.count, A = e.active;
  const Count per_logit = 1 + (auxiliary.probabilities ? 1 : 0) + (auxiliary.logits ? 1 : 0);
  return (2 * N * s.D + X * s.D) * element + (N * X * per_logit + 2 * N * A) * statistic + N * A * id +
         X * s.D * gradient;
}

}  // namespace assay::spec::router
