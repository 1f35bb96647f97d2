#include "spec/ops/qk_norm/qk_norm.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"

namespace assay::spec::qk_norm {

namespace {
rms_norm::Shape queries(const Shape& s) {
  return {.N = s.B * s.T * s.query_rows(), .D = s.H / s.query_rows() * s.E};
}
rms_norm::Shape keys(const Shape& s) {
  return {.N = s.B * s.T * s.key_rows(), .D = s.K / s.key_rows() * s.E};
}
Count angles(const Shape& s) { return Count(s.B) * s.T * s.E; }  // cosines and sines

std::string text(const std::vector<std::int64_t>& extents) {
  std::string joined;
  for (std::int64_t extent : extents) joined += (joined.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + joined + "]";
}
}  // namespace

Shape check(Shape shape, std::int64_t q_gain_entries, std::int64_t k_gain_entries, double eps) {
  // qk_norm_c4
  require(shape.E >= 1 && shape.H >= 1 && shape.K >= 1 && shape.B >= 0 && shape.T >= 0, "qk_norm_c4", [&] {
    return "B=" + std::to_string(shape.B) + ", T=" + std::to_string(shape.T) +
           ", H=" + std::to_string(shape.H) + ", K=" + std::to_string(shape.K) +
           ", E=" + std::to_string(shape.E);
  });
  // qk_norm_c1
  shape.across_heads = q_gain_entries != shape.E || k_gain_entries != shape.E;
  const std::int64_t across_q = shape.H * shape.E, across_k = shape.K * shape.E;
  require(!shape.across_heads || (q_gain_entries == across_q && k_gain_entries == across_k), "qk_norm_c1",
          [&] {
            return "q_gain has " + std::to_string(q_gain_entries) + " and k_gain " +
                   std::to_string(k_gain_entries) +
                   " entries; a norm of each head takes E=" + std::to_string(shape.E) +
                   " for both, one across heads H*E=" + std::to_string(across_q) +
                   " and K*E=" + std::to_string(across_k);
          });
  // qk_norm_c3
  require(std::isfinite(eps) && eps > 0, "qk_norm_c3", [&] { return "eps=" + std::to_string(eps); });
  return shape;
}

Shape shape_of(const std::vector<std::int64_t>& q, const std::vector<std::int64_t>& k) {
  // qk_norm_c2
  require(q.size() == 4 && k.size() == 4 && q[0] == k[0] && q[1] == k[1] && q[3] == k[3], "qk_norm_c2",
          [&] { return "q is " + text(q) + ", k is " + text(k); });
  return {.B = q[0], .T = q[1], .H = q[2], .K = k[2], .E = q[3]};
}

Flops forward_flops(const Shape& s) {
  return rms_norm::forward_flops(queries(s)) + rms_norm::forward_flops(keys(s));
}

Flops backward_flops(const Shape& s) {
  return rms_norm::backward_flops(queries(s)) + rms_norm::backward_flops(keys(s));
}

Count forward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return rms_norm::forward_bytes(queries(s), element, statistic) +
         rms_norm::forward_bytes(keys(s), element, statistic);
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return rms_norm::backward_bytes(queries(s), element, statistic) +
         rms_norm::backward_bytes(keys(s), element, statistic);
}

Count forward_rope_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  const Count values = Count(s.B) * s.T * s.K * s.E;
  return forward_bytes(s, element, statistic) + 2 * values * element + angles(s) * statistic;
}

Count backward_rope_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return backward_bytes(s, element, statistic) + angles(s) * statistic;
}

}  // namespace assay::spec::qk_norm
