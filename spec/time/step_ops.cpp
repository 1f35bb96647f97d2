#include "spec/time/step_ops.hpp"

#include <algorithm>

#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "spec/ops/adamw.hpp"
#include "spec/ops/attention.hpp"
#include "spec/ops/clip_grad_norm.hpp"
#include "spec/ops/cross_entropy.hpp"
#include "spec/ops/embedding.hpp"
#include "spec/ops/linear.hpp"
#include "spec/ops/qk_norm.hpp"
#include "spec/ops/rms_norm.hpp"
#include "spec/ops/rope.hpp"
#include "spec/ops/swiglu.hpp"

namespace assay::spec::time {
namespace {

constexpr std::int64_t id_bytes = 8;

void check_step(const StepShape& s) {
  // step_ops_c1
  if (s.micro < 1 || s.accumulation < 1 || s.tokens < 1 || s.head_rows < 0)
    throw SpecError("step_ops_c1", "micro = " + std::to_string(s.micro) +
                                       ", accumulation = " + std::to_string(s.accumulation) +
                                       ", tokens = " + std::to_string(s.tokens) + ", head_rows = " +
                                       std::to_string(s.head_rows) + " must be at least 1, 1, 1 and 0");
}

/// Collects the ops of one step.
class StepList {
 public:
  StepList(const ModelSpec& model, const StepShape& shape)
      : m_(model),
        s_(shape),
        N_(shape.micro * shape.tokens),
        element_(element_bytes(shape.dtype)),
        wide_(std::max<std::int64_t>(4, element_)),
        layers_(static_cast<double>(model.layers * shape.accumulation)) {}

  std::vector<StepOpCount> take() && {
    embed();
    attention_branch();
    mlp_branch();
    head_and_loss();
    recompute();
    optimizer();
    return std::move(list_);
  }

 private:
  void add(StepOp op, StepPass pass, double calls, Flops flops, Count bytes) {
    list_.push_back({op, pass, calls, flops, bytes});
  }

  /// x W^T, with the residual where one is added, and both of its gradients.
  void product(StepOp op, double calls, const linear::Shape& shape, bool residual) {
    const Flops flops = linear::forward_flops(shape);
    const Count rows_in = Count(shape.N) * shape.in, rows_out = Count(shape.N) * shape.out,
                weight = Count(shape.in) * shape.out;
    add(op, StepPass::forward, calls, flops,
        linear::forward_bytes(shape, element_) + (residual ? rows_out * element_ : Count(0)));
    add(op, StepPass::input_gradient, calls, flops, (rows_out + weight + rows_in) * element_);
    add(op, StepPass::weight_gradient, calls, flops, (rows_out + rows_in) * element_ + 2 * weight * wide_);
  }

  void embed() {
    const embedding::Shape shape{.N = N_, .V = m_.vocab, .D = m_.width};
    const auto calls = static_cast<double>(s_.accumulation);
    add(StepOp::embedding, StepPass::forward, calls, embedding::forward_flops(shape),
        embedding::forward_bytes(shape, element_, id_bytes));
    add(StepOp::embedding, StepPass::backward, calls, embedding::backward_flops(shape),
        embedding::backward_bytes(shape, element_, id_bytes, wide_));
    const rms_norm::Shape norm{.N = N_, .D = m_.width};
    const Count passes_more = (again() ? 2 : 1) * Count(N_) * m_.width * element_;
    add(StepOp::rms_norm, StepPass::forward, 2 * layers_ + calls, rms_norm::forward_flops(norm),
        rms_norm::forward_bytes(norm, element_, wide_));
    add(StepOp::rms_norm, StepPass::backward, 2 * layers_ + calls, rms_norm::backward_flops(norm),
        rms_norm::backward_bytes(norm, element_, wide_) + passes_more);
  }

  void attention_branch() {
    const std::int64_t B = s_.micro, T = s_.tokens, H = m_.heads, K = m_.kv_heads, E = m_.head_dim;
    product(StepOp::qkv, layers_, {.N = N_, .in = m_.width, .out = (H + 2 * K) * E}, false);
    if (m_.qk_norm) {
      const qk_norm::Shape norm{.B = B, .T = T, .H = H, .K = K, .E = E};
      add(StepOp::qk_norm, StepPass::forward, layers_, qk_norm::forward_flops(norm),
          qk_norm::forward_bytes(norm, element_, wide_));
      add(StepOp::qk_norm, StepPass::backward, layers_, qk_norm::backward_flops(norm),
          qk_norm::backward_bytes(norm, element_, wide_));
    }
    const rope::Shape turned{.B = B, .T = T, .H = H + K, .E = E};
    add(StepOp::rope, StepPass::forward, layers_, rope::forward_flops(turned),
        rope::forward_bytes(turned, element_, wide_));
    add(StepOp::rope, StepPass::backward, layers_, rope::backward_flops(turned),
        rope::backward_bytes(turned, element_, wide_));
    const attention::Shape pairs{.B = B, .T = T, .H = H, .K = K, .E = E};
    add(StepOp::attention, StepPass::forward, layers_, attention::forward_flops(pairs, {}),
        attention::forward_bytes(pairs, element_, wide_));
    add(StepOp::attention, StepPass::backward, layers_, attention::backward_flops(pairs, {}),
        attention::backward_bytes(pairs, element_, wide_));
    product(StepOp::attention_output, layers_, {.N = N_, .in = H * E, .out = m_.width}, true);
  }

  void mlp_branch() {
    product(StepOp::gate_up, layers_, {.N = N_, .in = m_.width, .out = 2 * m_.ffn}, false);
    const swiglu::Shape shape{.N = N_, .F = m_.ffn};
    add(StepOp::swiglu, StepPass::forward, layers_, swiglu::forward_flops(shape),
        swiglu::forward_bytes(shape, element_));
    add(StepOp::swiglu, StepPass::backward, layers_, swiglu::backward_flops(shape),
        swiglu::backward_bytes(shape, element_) + (again() ? Count(N_) * m_.ffn * element_ : Count(0)));
    product(StepOp::down, layers_, {.N = N_, .in = m_.ffn, .out = m_.width}, true);
  }

  void head_and_loss() {
    const std::int64_t rows = s_.head_rows > 0 ? std::min(s_.head_rows, N_) : N_;
    const double calls = static_cast<double>(s_.accumulation * N_) / static_cast<double>(rows);
    product(StepOp::head, calls, {.N = rows, .in = m_.width, .out = m_.vocab}, false);
    const cross_entropy::Shape logits{.N = rows, .V = m_.vocab};
    // The gradient at once: logits and targets are read by the two together, lse is not read again.
    add(StepOp::cross_entropy, StepPass::forward, calls,
        cross_entropy::forward_flops(logits, rows) + cross_entropy::backward_flops(logits, rows),
        cross_entropy::forward_bytes(logits, element_, id_bytes, wide_) + Count(rows) * m_.vocab * element_);
  }

  /// Whether backward writes the values of norms and of SwiGLU again.
  bool again() const { return s_.recompute != Recompute::none; }

  /// Forward once more: of attention, or of the block but for SwiGLU and `down`.
  void recompute() {
    const bool block = s_.recompute == Recompute::block;
    if (!block && s_.recompute != Recompute::attention) return;
    const std::vector<StepOpCount> all = list_;
    for (StepOpCount op : all) {
      const bool of_block = op.op == StepOp::rms_norm || op.op == StepOp::qkv || op.op == StepOp::qk_norm ||
                            op.op == StepOp::rope || op.op == StepOp::attention_output ||
                            op.op == StepOp::gate_up;
      if (op.pass != StepPass::forward || (op.op != StepOp::attention && !(block && of_block))) continue;
      op.pass = StepPass::recompute;
      if (op.op == StepOp::rms_norm) op.calls = 2 * layers_;
      list_.push_back(op);
    }
  }

  void optimizer() {
    const std::int64_t entries = parameter_count(m_).to_int64();
    const bool masters = s_.dtype == Dtype::bf16 && s_.states != Dtype::bf16;
    const std::int64_t state = s_.dtype == Dtype::bf16 ? element_bytes(s_.states) : element_;
    add(StepOp::zero_gradients, StepPass::update, 1, {}, beside_products() * wide_);
    add(StepOp::clip_grad_norm, StepPass::update, 1, {Count(0), 2 * Count(entries)},
        clip_grad_norm::norm_bytes(entries, wide_));
    add(StepOp::adamw, StepPass::update, 1, adamw::update_flops(entries),
        adamw::update_bytes(entries, state, wide_, masters ? element_ : 0));
  }

  /// Entries whose gradient no product writes: gains, and the embedding unless the head is the same matrix.
  Count beside_products() const {
    Count entries = 0;
    for (const Parameter& parameter : inventory(m_).parameters)
      if (!parameter.matrix() || (parameter.role == Role::embedding && !m_.tied_embeddings))
        entries += Count(parameter.size);
    return entries;
  }

  const ModelSpec& m_;
  const StepShape& s_;
  const std::int64_t N_, element_, wide_;  ///< wide: gradients, statistics and rope's table
  const double layers_;                    ///< times passes
  std::vector<StepOpCount> list_;
};

}  // namespace

std::string_view to_string(StepOp op) {
  static constexpr std::string_view names[step_ops_count] = {
      "embedding",      "rms_norm", "qkv",  "qk_norm", "rope",          "attention",     "attention_output",
      "gate_up",        "swiglu",   "down", "head",    "other_product", "cross_entropy", "zero_gradients",
      "clip_grad_norm", "adamw"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(StepPass pass) {
  static constexpr std::string_view names[step_passes] = {"forward",        "recompute",       "backward",
                                                          "input gradient", "weight gradient", "update"};
  return names[static_cast<std::size_t>(pass)];
}

std::string name_of(StepOp op, StepPass pass) {
  return std::string(to_string(op)) + " " + std::string(to_string(pass));
}

StepClass class_of(StepOp op) {
  switch (op) {
    case StepOp::qkv:
    case StepOp::attention_output:
    case StepOp::gate_up:
    case StepOp::down:
    case StepOp::head:
    case StepOp::other_product:
      return StepClass::product;
    case StepOp::attention:
      return StepClass::attention;
    case StepOp::cross_entropy:
      return StepClass::loss;
    case StepOp::zero_gradients:
    case StepOp::clip_grad_norm:
    case StepOp::adamw:
      return StepClass::optimizer;
    case StepOp::embedding:
    case StepOp::rms_norm:
    case StepOp::qk_norm:
    case StepOp::rope:
    case StepOp::swiglu:
      return StepClass::elementwise;
  }
  return StepClass::elementwise;
}

std::string_view to_string(StepClass kind) {
  static constexpr std::string_view names[] = {"product", "attention", "elementwise", "loss", "optimizer"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<StepOpCount> step_ops(const ModelSpec& model, const StepShape& shape) {
  check(model);
  check_step(shape);
  return StepList(model, shape).take();
}

std::optional<double> roofline(const Flops& flops, const Count& bytes, const Ceiling& ceiling) {
  if (!(ceiling.peak > 0) && !(ceiling.bandwidth > 0)) return {};
  const double compute = ceiling.peak > 0 ? flops.matmul.to_double() / ceiling.peak : 0;
  const double memory = ceiling.bandwidth > 0 ? bytes.to_double() / ceiling.bandwidth : 0;
  return std::max(compute, memory);
}

}  // namespace assay::spec::time
