#include "spec/ops/latent_attention/latent_attention.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"
#include "spec/ops/linear/linear.hpp"
#include "spec/ops/rms_norm/rms_norm.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::spec::latent_attention {

namespace {
std::string text_of(const std::vector<std::int64_t>& extents) {
  std::string joined;
  for (std::int64_t extent : extents) joined += (joined.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + joined + "]";
}

Count tokens(const Shape& s) { return Count(s.B) * s.T; }

/// Adds up the linears and norms in front of `expand`.
template <class Linear, class Norm>
Flops projections(const Shape& s, const Linear& linear, const Norm& norm) {
  const std::int64_t N = s.B * s.T, queries = s.H * s.E, Ckv = s.Ckv;
  Flops sum;
  const auto add_linear = [&](std::int64_t in, std::int64_t out) { sum = sum + linear({N, in, out}); };
  const auto add_norm = [&](std::int64_t width) { sum = sum + norm({N, width}); };
  if (s.Cq > 0) {
    add_linear(s.D, s.Cq);
    add_norm(s.Cq);
    add_linear(s.Cq, queries);
  } else {
    add_linear(s.D, queries);
  }
  add_linear(s.D, Ckv + s.R);
  add_norm(Ckv);
  add_linear(Ckv, s.H * (s.E - s.R + s.W));
  return sum;
}

/// The turned entries: of all query heads and of the one shared key.
rope::Shape turned(const Shape& s) { return {.B = s.B, .T = s.T, .H = s.H + 1, .E = s.R}; }

/// What `expand` moves in either direction: queries and values on both sides, the keys' other entries and the
/// shared key on one side and whole keys on the other; the table of angles.
Count moved_bytes(const Shape& s, std::int64_t element, std::int64_t table) {
  const Count q = 2 * Count(s.H) * s.E, k = Count(s.H) * (s.E - s.R) + s.R + Count(s.H) * s.E,
              v = 2 * Count(s.H) * s.W;
  return tokens(s) * ((q + k + v) * element + Count(s.R) * table);
}
}  // namespace

Shape shape_of(const ModelSpec& m, std::int64_t B, std::int64_t T) {
  const LatentAttention& a = m.latent.value();
  return {.B = B,
          .T = T,
          .D = m.width,
          .H = m.heads,
          .Cq = a.query_rank,
          .Ckv = a.key_value_rank,
          .E = m.head_dim,
          .R = a.rope_dim,
          .W = a.value_dim};
}

attention::Shape attention_of(const Shape& s) {
  return {.B = s.B, .T = s.T, .H = s.H, .K = s.H, .E = s.E, .W = s.W};
}

void check(const Shape& s, double eps) {
  // latent_attention_c2
  require(s.B >= 0 && s.T >= 0 && s.D >= 1 && s.H >= 1 && s.Cq >= 0 && s.Ckv >= 1 && s.W >= 1,
          "latent_attention_c2", [&] {
            return "B=" + std::to_string(s.B) + ", T=" + std::to_string(s.T) + ", D=" + std::to_string(s.D) +
                   ", H=" + std::to_string(s.H) + ", Cq=" + std::to_string(s.Cq) +
                   ", Ckv=" + std::to_string(s.Ckv) + ", W=" + std::to_string(s.W);
          });
  // latent_attention_c3
  require(s.R >= 2 && s.R % 2 == 0 && s.R < s.E, "latent_attention_c3", [&] {
    return "R=" + std::to_string(s.R) + " is not even and in [2, E) with E=" + std::to_string(s.E);
  });
  // latent_attention_c4
  require(std::isfinite(eps) && eps > 0, "latent_attention_c4", [&] { return "eps=" + std::to_string(eps); });
}

void check_extents(const char* name, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& expected) {
  // latent_attention_c1
  require(extents == expected, "latent_attention_c1",
          [&] { return std::string(name) + " is " + text_of(extents) + ", expected " + text_of(expected); });
}

double score_factor(const std::optional<RopeScaling>& scaling) {
  if (!scaling || scaling->kind != RopeScalingKind::yarn || scaling->mscale_all_dim == 0) return 1;
  const double scale = rope::yarn_scale(scaling->factor, scaling->mscale_all_dim);
  return scale * scale;
}

Flops expand_forward_flops(const Shape& s) { return rope::forward_flops(turned(s)); }

// The shared key's gradient is a sum over the heads.
Flops expand_backward_flops(const Shape& s) {
  return rope::backward_flops(turned(s)) + Flops{0, tokens(s) * s.H * s.R};
}

Count expand_forward_bytes(const Shape& s, std::int64_t element, std::int64_t table) {
  return moved_bytes(s, element, table);
}

Count expand_backward_bytes(const Shape& s, std::int64_t element, std::int64_t table) {
  return moved_bytes(s, element, table);
}

Count split_bytes(const Shape& s, std::int64_t element) {
  return 2 * tokens(s) * (Count(s.Ckv) + s.R) * element;
}

Flops forward_flops(const Shape& s, const attention::Mask& mask) {
  return projections(s, linear::forward_flops, rms_norm::forward_flops) + expand_forward_flops(s) +
         attention::forward_flops(attention_of(s), mask);
}

// The gradients of x by the two linears that read it are added.
Flops backward_flops(const Shape& s, const attention::Mask& mask) {
  return projections(s, linear::backward_flops, rms_norm::backward_flops) + expand_backward_flops(s) +
         attention::backward_flops(attention_of(s), mask) + Flops{0, tokens(s) * s.D};
}

Flops up_flops(const Shape& s) {
  const std::int64_t N = s.B * s.T;
  const linear::Shape queries{.N = N, .in = s.Cq > 0 ? s.Cq : s.D, .out = s.H * s.E};
  const linear::Shape keys_and_values{.N = N, .in = s.Ckv, .out = s.H * (s.E - s.R + s.W)};
  return linear::forward_flops(queries) + linear::forward_flops(keys_and_values) + expand_forward_flops(s);
}

Count expanded_bytes(const Shape& s, std::int64_t element) {
  return tokens(s) * s.H * (2 * Count(s.E) + s.W) * element;
}

Count compressed_bytes(const Shape& s, std::int64_t element) {
  return tokens(s) * (Count(s.Cq) + s.Ckv + s.R) * element;
}

}  // namespace assay::spec::latent_attention
