#include "impl/ops/latent_attention/latent_attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::latent_attention {

using spec::latent_attention::check_extents;
using spec::time::StepOp;
using spec::time::StepPass;

namespace {
std::int64_t columns_of_qkv(const Shape& s) { return s.H * (2 * s.E + s.W); }
std::int64_t columns_of_key_value(const Shape& s) { return s.H * (s.E - s.R + s.W); }

/// Positions and table of the turned entries, whose head is no tensor of its own.
void check_turned(const Shape& s, const at::Tensor& of, const rope::Table& table,
                  const at::Tensor& positions) {
  rope::check(of.new_empty({1}).expand({s.B, s.T, 1, s.R}), 1, table, positions);
  check_contiguous("latent_attention", {table.cosine, table.sine, positions});
}
}  // namespace

Split split(const at::Tensor& down, std::int64_t R) {
  const metrics::OpScope timed(StepOp::latent_split, StepPass::forward);
  const std::int64_t Ckv = down.size(-1) - R;
  check_extents("kv_down", down.sizes().vec(), {down.size(0), std::max<std::int64_t>(Ckv, 1) + R});
  const auto copy = [&](std::int64_t first, std::int64_t count) {
    return down.narrow(1, first, count).clone(at::MemoryFormat::Contiguous);  // also of a single row
  };
  return {copy(0, Ckv), copy(Ckv, R)};
}

at::Tensor join(const at::Tensor& key_value, const at::Tensor& shared_key) {
  const metrics::OpScope timed(StepOp::latent_split, StepPass::backward);
  check_extents("d_shared_key", shared_key.sizes().vec(), {key_value.size(0), shared_key.size(-1)});
  return at::cat({key_value, shared_key}, 1);
}

at::Tensor expand(const at::Tensor& query, const at::Tensor& key_value, const at::Tensor& shared_key,
                  const Shape& s, Pairs pairs, const rope::Table& table, const at::Tensor& positions) {
  const metrics::OpScope timed(StepOp::latent_expand, StepPass::forward);
  const std::int64_t N = s.B * s.T;
  check_extents("query", query.sizes().vec(), {N, s.H * s.E});
  check_extents("key_value", key_value.sizes().vec(), {N, columns_of_key_value(s)});
  check_extents("shared_key", shared_key.sizes().vec(), {N, s.R});
  check_contiguous("latent_attention", {query, key_value, shared_key});
  check_turned(s, query, table, positions);
  return (query.is_cpu() ? cpu::expand : cuda::expand)(query, key_value, shared_key, s, pairs, table,
                                                       positions);
}

Gradient expand_backward(const at::Tensor& dqkv, const Shape& s, Pairs pairs, const rope::Table& table,
                         const at::Tensor& positions) {
  const metrics::OpScope timed(StepOp::latent_expand, StepPass::backward);
  check_extents("dqkv", dqkv.sizes().vec(), {s.B * s.T, columns_of_qkv(s)});
  check_contiguous("latent_attention", {dqkv});
  check_turned(s, dqkv, table, positions);
  return (dqkv.is_cpu() ? cpu::expand_backward : cuda::expand_backward)(dqkv, s, pairs, table, positions);
}

namespace aten {

namespace {
/// x [..., R] with its pairs turned by the angles of each token, [N, 1, R/2], in their type.
at::Tensor turned(const at::Tensor& x, Pairs pairs, const at::Tensor& cosine, const at::Tensor& sine) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor wide = x.to(cosine.scalar_type());
  if (pairs == Pairs::halves) {
    const at::Tensor a = wide.narrow(-1, 0, half), b = wide.narrow(-1, half, half);
    return at::cat({a * cosine - b * sine, b * cosine + a * sine}, -1);
  }
  const at::Tensor by_pair = wide.unflatten(-1, {half, 2}), a = by_pair.select(-1, 0),
                   b = by_pair.select(-1, 1);
  return at::stack({a * cosine - b * sine, b * cosine + a * sine}, -1).flatten(-2);
}

at::Tensor angles(const at::Tensor& of, const Shape& s, const at::Tensor& positions) {
  const at::Tensor rows = positions.defined() ? at::index_select(of, 0, positions.flatten())
                                              : of.narrow(0, 0, s.T).repeat({s.B, 1});
  return rows.unsqueeze(1);
}
}  // namespace

at::Tensor expand(const at::Tensor& query, const at::Tensor& key_value, const at::Tensor& shared_key,
                  const Shape& s, Pairs pairs, const rope::Table& table, const at::Tensor& positions) {
  const std::int64_t N = s.B * s.T, kept = s.E - s.R;
  const at::Tensor cosine = angles(table.cosine, s, positions), sine = angles(table.sine, s, positions);
  const at::Tensor q = query.view({N, s.H, s.E}), kv = key_value.view({N, s.H, kept + s.W});
  const auto turn = [&](const at::Tensor& x) {
    return turned(x, pairs, cosine, sine).to(query.scalar_type());
  };
  const at::Tensor shared = turn(shared_key.view({N, 1, s.R})).expand({N, s.H, s.R});
  const auto side_by_side = [](const at::Tensor& left, const at::Tensor& right) {
    return at::cat({left, right}, 2).flatten(1);
  };
  return at::cat({side_by_side(q.narrow(2, 0, kept), turn(q.narrow(2, kept, s.R))),
                  side_by_side(kv.narrow(2, 0, kept), shared), kv.narrow(2, kept, s.W).flatten(1)},
                 1);
}

Gradient expand_backward(const at::Tensor& dqkv, const Shape& s, Pairs pairs, const rope::Table& table,
                         const at::Tensor& positions) {
  const std::int64_t N = s.B * s.T, kept = s.E - s.R;
  const at::Tensor cosine = angles(table.cosine, s, positions), sine = -angles(table.sine, s, positions);
  const auto part = [&](std::int64_t first, std::int64_t width) {
    return dqkv.narrow(1, first, s.H * width).unflatten(1, {s.H, width});
  };
  const at::Tensor dq = part(0, s.E), dk = part(s.H * s.E, s.E), dv = part(2 * s.H * s.E, s.W);
  const auto turn = [&](const at::Tensor& x) {
    return turned(x, pairs, cosine, sine).to(dqkv.scalar_type());
  };
  const at::Tensor shared = dk.narrow(2, kept, s.R).to(cosine.scalar_type()).sum(1, /*keepdim=*/true);
  return {at::cat({dq.narrow(2, 0, kept), turn(dq.narrow(2, kept, s.R))}, 2).view({N, -1}),
          at::cat({dk.narrow(2, 0, kept), dv}, 2).view({N, -1}), turn(shared).view({N, s.R})};
}
}  // namespace aten

}  // namespace assay::impl::latent_attention
