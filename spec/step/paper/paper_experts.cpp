// The paper ops of a mixture of experts: spec/step/experts.hpp over shapes.
#include <algorithm>
#include <utility>

#include "spec/ops/linear/linear.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/ops/router/router.hpp"
#include "spec/ops/swiglu/swiglu.hpp"
#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

using time::StepPass;

namespace {
/// Slots that a warp of the GPU's sort counts (impl/ops/permute/permute_launch.hpp).
constexpr std::int64_t sorted_chunk = 1024;
/// Rows whose probabilities a block of the GPU sums (impl/ops/router/router_launch.hpp).
constexpr std::int64_t summed_rows = 512;
}  // namespace

Routing PaperOps::route(const Site& site, const Operand& x, const Weight& router, const Vector& bias) {
  begin_op(site);
  read(x, ReadBy::forward);
  match(site, x.columns, router.in);
  const std::int64_t N = x.rows, X = router.out, A = s_.model.experts->active, slots = N * A;
  // Each tensor rank routes whole sequences (placement_c14), but for validation's batches.
  const std::int64_t G = B_ % tensor_ranks() == 0 ? B_ / tensor_ranks() : 1;
  const Experts& how = *s_.model.experts;
  const Count scores = Count(N) * X;
  const Gemm gemm{.rows = N, .in = router.in, .out = X};
  record_gemm(site, StepPass::forward, gemm, gemm_bytes(gemm) + scores * (statistic_ - element_));
  // Beside the GEMM, which leaves the logits: they are read, and written as scores.
  record(site, StepPass::forward, {Count(0), router::forward_flops({.N = N, .D = router.in}, how).vector},
         2 * scores * statistic_ + Count(slots) * (statistic_ + index_bytes) +
             (Count(N) + bias.entries) * statistic_);
  // How often the tokens of each sequence chose an expert.
  record(site, StepPass::forward, load_balancing::shares_flops({.N = N, .X = X, .G = G}),
         (Count(slots) + Count(G) * X) * index_bytes);
  const Count sorted = Count(slots) * 3 * index_bytes + Count(X) * index_bytes;
  record(step::site::permute, StepPass::forward, {}, sorted);
  // Experts, rows and counts are read, slots and rows written.
  if (drops_)
    record(step::site::permute, StepPass::forward, {},
           Count(slots) * 4 * index_bytes + (Count(G) + 2) * X * index_bytes);
  Routing out;
  {
    Tensor wide, wide_weight;
    if (!on_gpu() && s_.dtype == Dtype::bf16) {
      wide = temporary("wide_left", {N, router.in}, f32_bytes);
      wide_weight = temporary("wide_right", {X, router.in}, f32_bytes);
    }
    out.scores = make(site.value, Purpose::activations, {N, X}, statistic_);
    if (on_gpu()) temporary("gemm_workspace", {memory::gemm_workspace}, 1);
  }
  out.experts = make("chosen_experts", Purpose::activations, {N, A}, index_bytes);
  out.weights = make("routing_weights", Purpose::activations, {N, A}, statistic_);
  out.lse = make("router_lse", Purpose::activations, {N}, statistic_);
  out.counts = make("expert_choices", Purpose::activations, {G, X}, index_bytes);
  // Scores of sigmoids do not say what the logits were.
  if (how.scoring == Scoring::sigmoid && auxiliary_.logits)
    out.logits = make("router_logits", Purpose::activations, {N, X}, statistic_);
  const auto order = [&] {
    out.slots = make("row_slots", Purpose::activations, {slots}, index_bytes);
    out.rows = make("slot_rows", Purpose::activations, {N, A}, index_bytes);
    out.ends = make("expert_ends", Purpose::activations, {X}, index_bytes);
  };
  order();
  if (on_gpu()) temporary("expert_counts", {(slots + sorted_chunk - 1) / sorted_chunk, X}, index_bytes);
  if (drops_) {
    const Tensor all_slots = out.slots, all_rows = out.rows, all_ends = out.ends;
    order();
    if (on_gpu()) temporary("first_rows", {3, G, X}, index_bytes);
  }
  if (expert_ranks() > 1) exchange_routing(site, out);
  return out;
}

void PaperOps::router_losses(const Site& site, const Routing& routing) {
  begin_op(site);
  const std::int64_t N = routing.scores.rows(), X = routing.scores.columns();
  const load_balancing::Shape shape{.N = N, .X = X, .G = routing.counts.rows()};
  // One pass over the scores serves balance loss and entropy; the z-loss reads lse.
  record(site, StepPass::forward,
         router::probabilities_flops(N, *s_.model.experts) + load_balancing::forward_flops(shape) +
             load_balancing::z_forward_flops(N, X) + load_balancing::entropy_flops(N, X),
         load_balancing::forward_bytes(shape, statistic_) + Count(N) * statistic_);
  if (!on_gpu()) return;
  const Tensor terms = temporary("router_terms", {auxiliary_.of_batch ? 4 : 3, N}, f64_bytes);
  if (auxiliary_.of_batch) temporary("probability_sums", {(N + summed_rows - 1) / summed_rows, X}, f64_bytes);
}

Operand PaperOps::router_gradient(const Site& site, Tensor d_weights, const Routing& routing,
                                  const Weight& router) {
  begin_op(site);
  match(site, d_weights.columns(), routing.weights.columns());
  match(site, routing.scores.columns(), router.out);
  const std::int64_t N = d_weights.rows(), X = router.out, A = d_weights.columns();
  const load_balancing::Shape shape{.N = N, .X = X, .G = routing.counts.rows()};
  Flops flops{Count(0),
              router::backward_flops({.N = N, .D = router.in}, *s_.model.experts, auxiliary_).vector};
  Count bytes = Count(N) * X * (statistic_ + element_) + Count(N) * A * (2 * statistic_ + index_bytes);
  if (auxiliary_.probabilities) {
    flops = flops + load_balancing::backward_flops(shape);
    bytes += auxiliary_.of_batch ? Count(X) * f64_bytes : Count(shape.G) * X * index_bytes;
  }
  if (auxiliary_.logits) {
    flops = flops + load_balancing::z_backward_flops(N, X);
    bytes += Count(N) * (1 + (routing.logits.defined() ? X : 0)) * statistic_;
  }
  record(site, StepPass::backward, flops, bytes);
  return operand(temporary("d_logits", {N, X}, element_));
}

Operand PaperOps::permute(const Site& site, const Operand& x, const Routing& routing, Pass pass) {
  begin_op(site);
  read(x, ReadBy::forward);
  match(site, x.rows, routing.group_rows().rows());
  const Count bytes = (Count(x.rows) + routing.group_slots().rows()) * x.columns * element_;
  record(site, pass == Pass::forward ? StepPass::forward : StepPass::backward, {},
         bytes + Count(routing.group_slots().rows()) * index_bytes);
  return operand(value(site, {routing.group_slots().rows(), x.columns}));
}

Tensor PaperOps::combine(const Site& site, const Tensor& base, const Tensor& rows, const Routing& routing,
                         Pass pass) {
  begin_op(site);
  match(site, rows.rows(), routing.group_slots().rows());
  return added_up(site, base, rows, routing.group_rows().rows(), pass);
}

/// Rows of each of N tokens, added to `base` where that is defined.
Tensor PaperOps::added_up(const Site& site, const Tensor& base, const Tensor& rows, std::int64_t N,
                          Pass pass) {
  if (base.defined()) match(site, base.columns(), rows.columns());
  const Count added = Count(rows.rows()) * rows.columns(),
              through = (base.defined() ? 2 : 1) * Count(N) * rows.columns();
  record(site, pass == Pass::forward ? StepPass::forward : StepPass::backward, {Count(0), added},
         (through + added) * element_ + Count(rows.rows()) * index_bytes);
  return value(site, {N, rows.columns()});
}

/// Rows of all experts times the weights of theirs; `bytes` of all operands and the result.
void PaperOps::record_grouped(const Site& site, StepPass pass, std::int64_t rows, std::int64_t in,
                              std::int64_t out, const Count& bytes, bool fp8) {
  const Flops flops = linear::forward_flops({.N = rows, .in = in, .out = out});
  record(site, pass, flops, bytes);
  execute(site.component, pass == StepPass::forward ? ExecutedPass::forward : ExecutedPass::backward,
          {.needed = flops.matmul,
           .masked_pairs = 0,
           .padding = 0,
           .skipped_pairs = 0,
           .fp8 = fp8 ? flops.matmul : Count(0)});
}

/// On a CPU bf16 is multiplied in fp32, and codes are turned into values.
Tensor PaperOps::grouped_product(const char* name, Purpose purpose, std::int64_t rows, std::int64_t in,
                                 std::int64_t out, bool fp8) {
  const std::int64_t X = s_.model.experts->count / expert_ranks();
  const bool bf16 = s_.dtype == Dtype::bf16;
  Tensor left, right, wide;
  if (fp8 && rows == 0) return make(name, purpose, {rows, out}, element_);
  Tensor result;
  if (fp8) result = make(name, purpose, {rows, out}, element_);
  if (!on_gpu() && (bf16 || fp8)) {
    left = temporary("wide_left", {rows, in}, statistic_);
    right = temporary("wide_right", {X, in, out}, statistic_);
    wide = temporary("wide_result", {rows, out}, statistic_);
  }
  if (fp8) return result;
  return make(name, purpose, {rows, out}, element_);
}

/// Forward's GEMM where `role` is that of an activation, else the gradient of its input.
Tensor PaperOps::grouped_gemm(const Site& site, const Operand& left, const Weight& weight,
                              const Routing& routing, quantise::Role role) {
  const bool forward = role == quantise::Role::activation, fp8 = weight.of_experts();
  const Weight read_as = weight.as_read();
  Operand codes;
  if (fp8)
    codes = quantised(site, forward ? "rows" : "d_rows", Purpose::temporaries, left.tensor, read_as, role,
                      ReadBy::forward);
  const Quantised twin = weight_twin(site, read_as, forward ? ReadBy::forward : ReadBy::weight_gradient);
  begin_op(site);
  read(left, ReadBy::forward);
  const std::int64_t out = weight.out / routing.group_ends().rows(), from = forward ? weight.in : out,
                     to = forward ? out : weight.in;
  match(site, left.columns, from);
  match(site, left.rows, routing.group_slots().rows());
  record_grouped(site, forward ? StepPass::forward : StepPass::input_gradient, left.rows, from, to,
                 (Count(left.rows) * from + Count(weight.out) * weight.in) * (fp8 ? 1 : element_) +
                     Count(left.rows) * to * element_,
                 fp8);
  return grouped_product(forward ? site.value : site.gradient, forward ? site.purpose : site.gradient_purpose,
                         left.rows, from, to, fp8);
}

Tensor PaperOps::grouped_linear(const Site& site, const Operand& x, const Weight& weight,
                                const Routing& routing) {
  return grouped_gemm(site, x, weight, routing, quantise::Role::activation);
}

Tensor PaperOps::grouped_input_gradient(const Site& site, const Operand& dy, const Weight& weight,
                                        const Routing& routing) {
  return grouped_gemm(site, dy, weight, routing, quantise::Role::gradient);
}

void PaperOps::grouped_weight_gradient(const Site& site, const Operand& dy, const Operand& x,
                                       const Gradient& dweight, const Routing& routing) {
  begin_op(site);
  read(dy, ReadBy::weight_gradient);
  read(x, ReadBy::weight_gradient);
  const std::int64_t out = dweight.out / routing.group_ends().rows();
  match(site, dy.columns, out);
  match(site, x.columns, dweight.in);
  match(site, dy.rows, x.rows);
  const Count weight = Count(dweight.out) * dweight.in;
  record_grouped(
      site, StepPass::weight_gradient, x.rows, dweight.in, out,
      Count(x.rows) * (dweight.in + out) * element_ + (dweight.starts ? 1 : 2) * weight * statistic_);
  if (on_gpu() && s_.dtype == Dtype::bf16 && !s_.grouped_sums)
    temporary("d_experts", {dweight.out, dweight.in}, element_);
  if (on_gpu() || s_.dtype != Dtype::bf16) return;
  const Tensor left = temporary("wide_left", {x.rows, out}, f32_bytes),
               right = temporary("wide_right", {x.rows, dweight.in}, f32_bytes);
}

Operand PaperOps::weighted_gate(const Site& site, const Tensor& gate_up, const Routing& routing,
                                const Weight& down, ReadBy) {
  begin_op(site);
  const swiglu::Shape shape{.N = gate_up.rows(), .F = gate_up.columns() / 2};
  match(site, shape.N, routing.group_slots().rows());
  match(site, shape.F, down.in);
  record(site, StepPass::forward, swiglu::weighted_forward_flops(shape, swiglu::activation_of(s_.model.mlp)),
         swiglu::weighted_forward_bytes(shape, element_, statistic_, index_bytes));
  return operand(value(site, {shape.N, shape.F}));
}

step::WeightedGateGradient<PaperOps> PaperOps::weighted_gate_backward(const Site& site, Tensor d_gated,
                                                                      Tensor gate_up, Operand kept,
                                                                      const Routing& routing, const Weight&,
                                                                      const Weight&) {
  Tensor d_weights = temporary("d_routing_weights", routing.row_weights().storage->shape, statistic_);
  begin_op(site);
  const swiglu::Shape shape{.N = gate_up.rows(), .F = gate_up.columns() / 2};
  match(site, d_gated.columns(), shape.F);
  const bool again = !kept.defined();
  const auto value = again ? swiglu::WeightedValue::written : swiglu::WeightedValue::kept;
  record(site, StepPass::backward,
         swiglu::weighted_backward_flops(shape, swiglu::activation_of(s_.model.mlp), value),
         swiglu::weighted_backward_bytes(shape, value, element_, statistic_, index_bytes));
  write(gate_up);
  if (again) {
    write(d_gated);
    kept = operand(d_gated);
  }
  if (drops_ && expert_ranks() == 1) temporary("dropped_slots", routing.group_rows().storage->shape, 1);
  return {operand(gate_up), std::move(kept), std::move(d_weights)};
}

}  // namespace assay::spec::paper
