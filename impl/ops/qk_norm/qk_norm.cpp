#include "impl/ops/qk_norm/qk_norm.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/rms_norm/rms_norm.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"
#include "spec/ops/qk_norm/qk_norm.hpp"

namespace assay::impl::qk_norm {

namespace {
void check(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t heads,
           std::int64_t kv_heads, double eps) {
  // qk_norm_c2
  require(qkv.dim() == 4 && qkv.size(2) == heads + 2 * kv_heads, "qk_norm_c2", [&] {
    return "qkv " + describe(qkv) + ", H=" + std::to_string(heads) + ", K=" + std::to_string(kv_heads);
  });
  spec::qk_norm::check({.B = qkv.size(0), .T = qkv.size(1), .H = heads, .K = kv_heads, .E = qkv.size(3)},
                       q_gain.numel(), k_gain.numel(), eps);
}

/// Heads [first, first + count), normalised with the rules of rms_norm over rows of the gain's entries.
struct Heads {
  std::int64_t first, count;
  at::Tensor gain;
  at::Tensor of(const at::Tensor& qkv) const { return qkv.narrow(2, first, count); }
  at::Tensor rows_of(const at::Tensor& qkv) const { return of(qkv).reshape({-1, gain.numel()}); }
  std::int64_t rows(std::int64_t E) const { return count * E / gain.numel(); }  ///< of a token
};
}  // namespace

Forward forward_rope(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                     std::int64_t heads, std::int64_t kv_heads, double eps, const rope::Table& table,
                     const at::Tensor& positions) {
  const metrics::OpScope timed(spec::time::StepOp::qk_norm_rope, spec::time::StepPass::forward);
  check(qkv, q_gain, k_gain, heads, kv_heads, eps);
  rope::check(qkv, heads + kv_heads, table, positions);
  check_contiguous("qk_norm", {qkv, q_gain, k_gain, table.cosine, table.sine, positions});
  check_statistic("qk_norm", qkv, {q_gain, k_gain});
  if (!qkv.is_cpu()) return cuda::forward_rope(qkv, q_gain, k_gain, heads, kv_heads, eps, table, positions);
  Forward out = cpu::forward(qkv, q_gain, k_gain, heads, kv_heads, eps);
  rope::cpu::rotate(out.qkv, heads + kv_heads, table, positions, /*inverse=*/false);
  return out;
}

void backward_rope(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                   const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
                   at::Tensor dk_gain, const rope::Table& table, const at::Tensor& positions) {
  const metrics::OpScope timed(spec::time::StepOp::qk_norm_rope, spec::time::StepPass::backward);
  check(qkv, q_gain, k_gain, heads, kv_heads, 1);
  rope::check(qkv, heads + kv_heads, table, positions);
  check_contiguous("qk_norm",
                   {dqkv, qkv, q_gain, k_gain, rstd, dq_gain, dk_gain, table.cosine, table.sine, positions});
  check_statistic("qk_norm", qkv, {q_gain, k_gain, dq_gain, dk_gain});
  if (!qkv.is_cpu())
    return cuda::backward_rope(dqkv, qkv, q_gain, k_gain, rstd, heads, kv_heads, dq_gain, dk_gain, table,
                               positions);
  rope::cpu::rotate(dqkv, heads + kv_heads, table, positions, /*inverse=*/true);
  cpu::backward(dqkv, qkv, q_gain, k_gain, rstd, heads, kv_heads, dq_gain, dk_gain);
}

namespace aten {
Forward forward_rope(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                     std::int64_t heads, std::int64_t kv_heads, double eps, const rope::Table& table,
                     const at::Tensor& positions) {
  Forward out{qkv.clone(), {}};
  std::vector<at::Tensor> rstd;
  for (const Heads& part : {Heads{0, heads, q_gain}, Heads{heads, kv_heads, k_gain}}) {
    const auto normed = rms_norm::aten::forward(part.rows_of(qkv), part.gain, eps);
    part.of(out.qkv).copy_(normed.y.view_as(part.of(qkv)));
    rstd.push_back(normed.rstd.view({qkv.size(0), qkv.size(1), part.rows(qkv.size(3))}));
  }
  out.rstd = at::cat(rstd, 2);
  rope::aten::rotate(out.qkv, heads + kv_heads, table, positions, /*inverse=*/false);
  return out;
}

void backward_rope(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
                   const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
                   at::Tensor dk_gain, const rope::Table& table, const at::Tensor& positions) {
  rope::aten::rotate(dqkv, heads + kv_heads, table, positions, /*inverse=*/true);
  std::int64_t first_row = 0;
  const auto one = [&](const Heads& part, const at::Tensor& dgain) {
    const at::Tensor x = part.rows_of(qkv), dx = at::zeros_like(x);
    const std::int64_t rows = part.rows(qkv.size(3));
    rms_norm::aten::backward(part.rows_of(dqkv), x, part.gain, rstd.narrow(2, first_row, rows).reshape({-1}),
                             dx, dx, dgain);
    part.of(dqkv).copy_(dx.view_as(part.of(dqkv)));
    first_row += rows;
  };
  one({0, heads, q_gain}, dq_gain);
  one({heads, kv_heads, k_gain}, dk_gain);
}
}  // namespace aten

}  // namespace assay::impl::qk_norm
