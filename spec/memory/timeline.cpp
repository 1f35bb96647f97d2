#include "spec/memory/timeline.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "spec/error.hpp"
#include "spec/layout/actions.hpp"
#include "spec/memory/attention.hpp"
#include "spec/memory/document_places.hpp"
#include "spec/memory/head.hpp"
#include "spec/memory/state.hpp"
#include "spec/model/inventory.hpp"
#include "spec/model/trainable.hpp"

namespace assay::spec::memory {

namespace {

/// impl/model/activations.hpp.
struct BlockActivations {
  Tensor x, normed, rstd, qkv_raw, qk_rstd, qkv, y, lse, x_mid, normed_mid, rstd_mid, gate_up, gated;
};
struct Activations {
  std::vector<BlockActivations> blocks;
  Tensor x_final, rstd_final, d_normed_final;
};

using Shape = std::vector<std::int64_t>;

class Walk {
 public:
  Walk(const Setting& setting, Ledger& ledger)
      : s_(setting),
        m_(setting.model),
        ledger_(ledger),
        bf16_(setting.dtype == Dtype::bf16),
        element_(element_bytes(setting.dtype)),
        statistic_(bf16_ ? 4 : element_),
        all_heads_(m_.heads + 2 * m_.kv_heads) {
    size_batch(s_.micro, s_.sequence_length);
  }

  void initialise();
  void step();
  void sample();
  Activations forward();

 private:
  bool on_gpu() const { return s_.machine == Machine::cuda; }
  void size_batch(std::int64_t B, std::int64_t T) { B_ = B, T_ = T, N_ = B * T; }

  Tensor make(const char* name, Purpose purpose, Shape shape, std::int64_t bytes) {
    return ledger_.make(name, purpose, std::move(shape), bytes);
  }
  Tensor kept(const char* name, Shape shape) {
    return make(name, Purpose::activations, std::move(shape), element_);
  }
  Tensor statistic(const char* name, Shape shape) {
    return make(name, Purpose::activations, std::move(shape), statistic_);
  }
  Tensor temporary(const char* name, Shape shape) {
    return make(name, Purpose::temporaries, std::move(shape), element_);
  }
  Tensor wide(const char* name, Shape shape) { return make(name, Purpose::temporaries, std::move(shape), 4); }

  Tensor product(const char* name, Purpose purpose, std::int64_t rows, std::int64_t inner,
                 std::int64_t columns);
  void weight_gradient(std::int64_t rows, std::int64_t out, std::int64_t in);
  void norm_backward(std::int64_t columns);
  void attention_forward_op(BlockActivations& saved);
  Tensor attention_backward_op();
  std::vector<Tensor> held(const std::vector<Scratch>& scratch);

  Tensor attention_forward(const Tensor& x, Recompute recompute, BlockActivations& saved);
  void gate_up_forward(const Tensor& x, Recompute recompute, BlockActivations& saved);
  Tensor block_forward(const Tensor& x, Recompute recompute, BlockActivations& saved);
  void mlp_backward(BlockActivations& saved);
  void attention_backward(BlockActivations& saved);
  void head(Activations& saved);
  void backward(Activations saved);

  const Setting& s_;
  const ModelSpec& m_;
  Ledger& ledger_;
  const bool bf16_;
  const std::int64_t element_, statistic_, all_heads_;
  std::int64_t B_ = 0, T_ = 0, N_ = 0;
};

/// rows x inner times inner x columns. bf16 on a CPU is multiplied in fp32; cuBLASLt has a workspace.
Tensor Walk::product(const char* name, Purpose purpose, std::int64_t rows, std::int64_t inner,
                     std::int64_t columns) {
  if (on_gpu()) {
    Tensor result = make(name, purpose, {rows, columns}, element_);
    make("product_workspace", Purpose::temporaries, {product_workspace}, 1);
    return result;
  }
  if (!bf16_) return make(name, purpose, {rows, columns}, element_);
  const Tensor left = wide("wide_left", {rows, inner}), right = wide("wide_right", {inner, columns}),
               result = wide("wide_result", {rows, columns});
  return make(name, purpose, {rows, columns}, element_);
}

void Walk::weight_gradient(std::int64_t rows, std::int64_t out, std::int64_t in) {
  if (on_gpu()) make("product_workspace", Purpose::temporaries, {product_workspace}, 1);
  if (on_gpu() || !bf16_) return;
  const Tensor left = wide("wide_left", {rows, out}), right = wide("wide_right", {rows, in});
}

/// The GPU's kernel sums the gain's gradient in rows of its own.
void Walk::norm_backward(std::int64_t columns) {
  if (on_gpu())
    make("norm_partial", Purpose::temporaries, {std::min<std::int64_t>(N_, norm_partial_rows), columns},
         statistic_);
}

std::vector<Tensor> Walk::held(const std::vector<Scratch>& scratch) {
  std::vector<Tensor> there;
  there.reserve(scratch.size());
  for (const Scratch& each : scratch)
    there.push_back(make(each.name, Purpose::temporaries, each.shape, each.element_bytes));
  return there;
}

void Walk::attention_forward_op(BlockActivations& saved) {
  saved.y = kept("attention_y", {B_, T_, m_.heads, m_.head_dim});
  saved.lse = statistic("attention_lse", {B_, m_.heads, T_});
  held(attention_forward_scratch(s_, B_, T_));
}

/// dqkv: cuDNN writes it in place, plain products and loops when their own tensors are gone; FlashAttention
/// gives dq, dk and dv apart.
Tensor Walk::attention_backward_op() {
  const AttentionKernel kernel = attention_kernel(s_);
  Tensor dq, dk, dv, dqkv;
  const auto whole = [&] { return temporary("dqkv", {B_, T_, all_heads_, m_.head_dim}); };
  if (kernel == AttentionKernel::cudnn) dqkv = whole();
  if (kernel == AttentionKernel::flash)
    dq = temporary("dq", {B_, T_, m_.heads, m_.head_dim}),
    dk = temporary("dk", {B_, T_, m_.kv_heads, m_.head_dim}),
    dv = temporary("dv", {B_, T_, m_.kv_heads, m_.head_dim});
  held(attention_backward_scratch(s_, B_, T_));
  return dqkv ? dqkv : whole();
}

Tensor Walk::attention_forward(const Tensor& x, Recompute recompute, BlockActivations& saved) {
  const std::int64_t D = m_.width, E = m_.head_dim;
  Tensor normed = kept("normed", {N_, D});
  saved.x = x;
  saved.rstd = statistic("rstd", {N_});
  Tensor qkv = product(m_.qk_norm ? "qkv_raw" : "qkv", Purpose::activations, N_, D, all_heads_ * E);
  if (recompute == Recompute::none) saved.normed = normed;
  normed.reset();
  if (m_.qk_norm) {
    saved.qkv_raw = std::move(qkv);
    qkv = kept("qkv", {N_, all_heads_ * E});
    saved.qk_rstd = statistic("qk_rstd", {B_, T_, m_.heads + m_.kv_heads});
  }
  saved.qkv = qkv;
  attention_forward_op(saved);
  return product("x_mid", Purpose::activations, N_, m_.heads * E, D);
}

void Walk::gate_up_forward(const Tensor& x, Recompute recompute, BlockActivations& saved) {
  const Tensor normed = kept("normed_mid", {N_, m_.width});
  saved.x_mid = x;
  saved.rstd_mid = statistic("rstd_mid", {N_});
  if (recompute == Recompute::none) saved.normed_mid = normed;
  saved.gate_up = product("gate_up", Purpose::activations, N_, m_.width, 2 * m_.ffn);
}

Tensor Walk::block_forward(const Tensor& x, Recompute recompute, BlockActivations& saved) {
  const Tensor x_mid = attention_forward(x, recompute, saved);
  if (recompute >= Recompute::attention) saved.y.reset(), saved.lse.reset();
  gate_up_forward(x_mid, recompute, saved);
  Tensor gated = kept("gated", {N_, m_.ffn});
  if (recompute == Recompute::none) saved.gated = gated;
  Tensor out = product("x", Purpose::activations, N_, m_.ffn, m_.width);
  if (recompute == Recompute::block) {
    saved = {};
    saved.x = x;
  }
  return out;
}

/// impl/model/lm_head.cpp: `saved.x_final` to the gradient of the final norm's value.
void Walk::head(Activations& saved) {
  const std::int64_t D = m_.width, V = m_.vocab;
  const Tensor normed = make("normed_final", Purpose::head, {N_, D}, element_);
  saved.rstd_final = statistic("rstd_final", {N_});
  const std::int64_t rows = on_gpu() ? padded_vocabulary(V, element_) : V;
  Tensor padded, d_padded;
  if (rows != V) {
    padded = make("padded_head", Purpose::head, {rows, D}, element_);
    d_padded = make("d_padded_head", Purpose::head, {rows, D}, statistic_);
  }
  const std::int64_t most = chunk_tokens(N_, rows);
  if (most < N_) saved.d_normed_final = kept("d_normed_final", {N_, D});
  // All chunks but the last are alike: of them one is walked.
  const std::int64_t last = (N_ - 1) / most * most;
  for (const std::int64_t begin : std::set{std::int64_t{0}, last}) {
    const std::int64_t count = std::min(most, N_ - begin);
    const Tensor logits = product("logits", Purpose::head, count, D, rows);
    const Tensor lse = make("logits_lse", Purpose::head, {count}, statistic_);
    if (on_gpu()) make("loss_terms", Purpose::head, {2, count}, 8);
    weight_gradient(count, rows, D);
    Tensor dx = product(most < N_ ? "d_normed_chunk" : "d_normed_final",
                        most < N_ ? Purpose::head : Purpose::activations, count, rows, D);
    if (most == N_) saved.d_normed_final = std::move(dx);
  }
}

/// impl/model/model.cpp.
Activations Walk::forward() {
  Activations saved;
  saved.blocks.resize(static_cast<std::size_t>(m_.layers));
  ledger_.enter("forward of the embedding");
  Tensor x = kept("x", {N_, m_.width});
  for (std::int64_t block = 1; block <= m_.layers; ++block) {
    ledger_.enter("forward of block " + std::to_string(block));
    x = block_forward(x, s_.recompute, saved.blocks[static_cast<std::size_t>(block - 1)]);
  }
  ledger_.enter("the head");
  saved.x_final = std::move(x);
  head(saved);
  return saved;
}

void Walk::mlp_backward(BlockActivations& saved) {
  const std::int64_t D = m_.width, F = m_.ffn;
  Tensor gated = product("d_gated", Purpose::temporaries, N_, D, F);
  const Tensor d_gate_up = std::exchange(saved.gate_up, {});
  if (saved.gated) gated = std::exchange(saved.gated, {});
  weight_gradient(N_, D, F);
  gated.reset();
  Tensor normed = product("d_normed_mid", Purpose::temporaries, N_, 2 * F, D);
  norm_backward(D);
  saved.x_mid.reset();
  if (saved.normed_mid) normed = std::exchange(saved.normed_mid, {});
  weight_gradient(N_, 2 * F, D);
}

void Walk::attention_backward(BlockActivations& saved) {
  const std::int64_t D = m_.width, HE = m_.heads * m_.head_dim, all = all_heads_ * m_.head_dim;
  if (!saved.y) attention_forward_op(saved);
  weight_gradient(N_, D, HE);
  Tensor dy = product("dy", Purpose::temporaries, N_, D, HE);
  const Tensor dqkv = attention_backward_op();
  dy.reset(), saved.qkv.reset(), saved.y.reset(), saved.lse.reset();
  if (m_.qk_norm) {
    if (on_gpu())
      make("norm_partial", Purpose::temporaries, {head_norm_partial_rows, m_.head_dim}, statistic_);
    saved.qkv_raw.reset();
  }
  Tensor normed = product("d_normed", Purpose::temporaries, N_, all, D);
  norm_backward(D);
  if (saved.normed) normed = std::exchange(saved.normed, {});
  weight_gradient(N_, all, D);
}

void Walk::backward(Activations saved) {
  ledger_.enter("backward of the final norm");
  const Tensor dx = temporary("dx", {N_, m_.width});
  norm_backward(m_.width);
  saved.d_normed_final.reset(), saved.x_final.reset();
  for (std::int64_t block = m_.layers; block >= 1; --block) {
    const std::string name = "backward of block " + std::to_string(block);
    BlockActivations mine = std::move(saved.blocks[static_cast<std::size_t>(block - 1)]);
    if (!mine.gate_up) {
      ledger_.enter(name + ", its forward again");
      gate_up_forward(attention_forward(Tensor(mine.x), Recompute::norms_swiglu, mine),
                      Recompute::norms_swiglu, mine);
    }
    ledger_.enter(name + ", MLP");
    mlp_backward(mine);
    ledger_.enter(name + ", attention");
    attention_backward(mine);
  }
  ledger_.enter("backward of the embedding");
  if (on_gpu()) {
    const Tensor sorted = make("sorted_ids", Purpose::temporaries, {N_}, 8),
                 places = make("places", Purpose::temporaries, {N_}, 8);
  }
}

/// impl/ops/init.cpp: drawn in fp64 on the CPU, in place on a GPU.
void Walk::initialise() {
  if (on_gpu()) return;
  ledger_.enter("initial weights");
  std::int64_t largest = 0;
  for (const Parameter& parameter : inventory(m_).parameters)
    if (parameter.matrix()) largest = std::max(largest, parameter.size);
  make("initial_values", Purpose::temporaries, {largest}, 8);
}

/// A micro-batch ends with the tensors with which it began, so that of many only two are walked; the inputs
/// of all are there for the whole step.
void Walk::step() {
  ledger_.enter("inputs");
  std::vector<Tensor> inputs;
  const auto hold = [&](const char* name, std::int64_t entries, std::int64_t bytes) {
    inputs.push_back(make(name, Purpose::inputs, {s_.staged_steps, s_.micro_batches, entries}, bytes));
  };
  hold("inputs", N_, 8);
  hold("targets", N_, 8);
  if (s_.documents) {
    hold("positions", N_, 4);
    hold("documents", N_, 4);
    hold("document_offsets", document_places(B_, T_, 0) + 1, 4);
  }
  const auto walked = std::min<std::int64_t>(s_.micro_batches, 2);
  std::vector<Activations> saved(static_cast<std::size_t>(walked));
  for (const Action& action : step_actions(walked, Layout{})) {
    if (action.kind == ActionKind::forward)
      saved[static_cast<std::size_t>(action.micro_batch)] = forward();
    else if (action.kind == ActionKind::backward)
      backward(std::move(saved[static_cast<std::size_t>(action.micro_batch)]));
  }
}

/// impl/run/sample_text.cpp at its last token: a forward pass that keeps nothing, and all logits.
void Walk::sample() {
  if (s_.sampled == 0 || s_.sequence_length < 2) return;
  ledger_.enter("sampling");
  size_batch(s_.sampled, s_.sequence_length - 1);
  const Tensor ids = make("inputs", Purpose::inputs, {N_}, 8);
  Tensor x = kept("x", {N_, m_.width});
  for (std::int64_t block = 0; block < m_.layers; ++block) {
    BlockActivations discarded;
    x = block_forward(x, Recompute::block, discarded);
  }
  const Tensor normed = make("normed_final", Purpose::head, {N_, m_.width}, element_),
               rstd = statistic("rstd_final", {N_});
  const Tensor logits = product("logits", Purpose::head, N_, m_.width, m_.vocab);
}

void check(const Setting& s) {
  require_trainable(s.model);
  // memory_c1
  require(
      s.micro >= 1 && s.sequence_length >= 1 && s.micro_batches >= 1 && s.staged_steps >= 1 && s.sampled >= 0,
      "memory_c1", [&] {
        return "micro=" + std::to_string(s.micro) + " sequence_length=" + std::to_string(s.sequence_length) +
               " micro_batches=" + std::to_string(s.micro_batches) +
               " staged_steps=" + std::to_string(s.staged_steps) + " sampled=" + std::to_string(s.sampled);
      });
}

}  // namespace

std::vector<Item> kept_activations(const Setting& setting) {
  check(setting);
  Ledger ledger;
  const Activations saved = Walk(setting, ledger).forward();
  return ledger.there();
}

void walk(const Setting& setting, Ledger& ledger) {
  check(setting);
  const std::vector<Tensor> state = hold_state(setting, ledger);
  Walk walk(setting, ledger);
  walk.initialise();
  walk.step();
  walk.sample();
}

}  // namespace assay::spec::memory
