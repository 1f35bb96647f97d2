#include "impl/bench/op_calls.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "impl/memory/parameter_buffers.hpp"
#include "impl/metrics/executed_flops.hpp"
#include "impl/model/lm_head.hpp"
#include "impl/ops/adamw.hpp"
#include "impl/ops/attention.hpp"
#include "impl/ops/clip_grad_norm.hpp"
#include "impl/ops/cross_entropy.hpp"
#include "impl/ops/embedding.hpp"
#include "impl/ops/linear.hpp"
#include "impl/ops/qk_norm.hpp"
#include "impl/ops/rms_norm.hpp"
#include "impl/ops/rope.hpp"
#include "impl/ops/swiglu.hpp"
#include "impl/optim/optimizer.hpp"
#include "spec/ops/rope.hpp"

namespace assay::impl::bench {
namespace {

using spec::time::StepOp;
using spec::time::StepOpCount;
using spec::time::StepPass;

constexpr std::int64_t most_parameters = std::int64_t{1} << 28;

StepOpCount operator+(StepOpCount left, const StepOpCount& right) {
  left.flops = left.flops + right.flops;
  left.bytes += right.bytes;
  return left;
}

class OpCalls {
 public:
  OpCalls(const spec::ModelSpec& model, const spec::time::StepShape& shape, at::Device device,
          const std::function<void(const OpCall&)>& use)
      : m_(model),
        s_(shape),
        device_(device),
        use_(use),
        ops_(spec::time::step_ops(model, shape)),
        N_(shape.micro * shape.tokens),
        columns_(head_columns(model, shape.dtype, device)),
        type_(scalar_type(shape.dtype)),
        wide_(type_ == at::kBFloat16 ? at::kFloat : type_) {}

  void all() {
    embed();
    norms();
    const std::int64_t heads = m_.heads + 2 * m_.kv_heads;
    product(StepOp::qkv, N_, m_.width, heads * m_.head_dim, false);
    query_key_norm();
    attend();
    product(StepOp::attention_output, N_, m_.heads * m_.head_dim, m_.width, true);
    product(StepOp::gate_up, N_, m_.width, 2 * m_.ffn, false);
    gate();
    product(StepOp::down, N_, m_.ffn, m_.width, true);
    product(StepOp::head, s_.head_rows, m_.width, columns_, false);
    lose();
    optimise();
  }

 private:
  at::Tensor normal(at::IntArrayRef shape) const {
    return at::randn(shape, at::TensorOptions(device_).dtype(at::kFloat)).mul_(0.5).to(type_);
  }
  at::Tensor zeros(at::IntArrayRef shape, at::ScalarType type) const {
    return at::zeros(shape, at::TensorOptions(device_).dtype(type));
  }
  at::Tensor ids(std::int64_t count) const {
    return at::randint(m_.vocab, {count}, at::TensorOptions(device_).dtype(at::kLong));
  }

  std::optional<StepOpCount> find(StepOp op, StepPass pass) const {
    for (const StepOpCount& each : ops_)
      if (each.op == op && each.pass == pass) return each;
    return {};
  }
  void one(StepOp op, StepPass pass, const std::function<void()>& call,
           const std::function<void()>& prepare = {}) const {
    use_({name_of(op, pass), find(op, pass).value(), prepare, call});
  }

  void product(StepOp op, std::int64_t rows, std::int64_t in, std::int64_t out, bool residual) const {
    const at::Tensor x = normal({rows, in}), weight = normal({out, in}), dy = normal({rows, out}),
                     base = residual ? normal({rows, out}) : at::Tensor(), dweight = zeros({out, in}, wide_);
    one(op, StepPass::forward,
        [&] { residual ? linear::forward_residual(base, x, weight) : linear::forward(x, weight); });
    one(op, StepPass::input_gradient, [&] { linear::backward_input(dy, weight); });
    one(op, StepPass::weight_gradient, [&] { linear::backward_weight(dy, x, dweight); });
  }

  void embed() const {
    const at::Tensor table = normal({m_.vocab, m_.width}), tokens = ids(N_), dy = normal({N_, m_.width}),
                     dtable = zeros({m_.vocab, m_.width}, wide_);
    one(StepOp::embedding, StepPass::forward, [&] { embedding::forward(table, tokens); });
    one(StepOp::embedding, StepPass::backward, [&] { embedding::backward(dy, tokens, dtable); });
  }

  void norms() const {
    const at::Tensor x = normal({N_, m_.width}), gain = normal({m_.width}).to(wide_),
                     upstream = normal({N_, m_.width}), dy = upstream.clone(), dx = at::zeros_like(x),
                     dgain = zeros({m_.width}, wide_);
    const at::Tensor rstd = rms_norm::forward(x, gain, m_.norm_eps).rstd;
    one(StepOp::rms_norm, StepPass::forward, [&] { rms_norm::forward(x, gain, m_.norm_eps); });
    one(
        StepOp::rms_norm, StepPass::backward, [&] { rms_norm::backward(dy, x, gain, rstd, dx, dgain); },
        [&] { dy.copy_(upstream); });
  }

  void query_key_norm() const {
    if (!m_.qk_norm) return;
    const std::int64_t H = m_.heads, K = m_.kv_heads, E = m_.head_dim;
    const at::Tensor qkv = normal({s_.micro, s_.tokens, H + 2 * K, E}), gain = normal({E}).to(wide_),
                     upstream = at::randn_like(qkv), dqkv = upstream.clone(), dq = zeros({E}, wide_),
                     dk = zeros({E}, wide_);
    const at::Tensor rstd = qk_norm::forward(qkv, gain, gain, H, K, m_.norm_eps).rstd;
    one(StepOp::qk_norm, StepPass::forward, [&] { qk_norm::forward(qkv, gain, gain, H, K, m_.norm_eps); });
    one(
        StepOp::qk_norm, StepPass::backward,
        [&] { qk_norm::backward(dqkv, qkv, gain, gain, rstd, H, K, dq, dk); }, [&] { dqkv.copy_(upstream); });
  }

  void attend() const {
    const std::int64_t H = m_.heads, K = m_.kv_heads, E = m_.head_dim;
    const at::Tensor qkv = normal({s_.micro, s_.tokens, H + 2 * K, E}),
                     dy = normal({s_.micro, s_.tokens, H, E});
    const auto table = rope::table(spec::rope::inverse_frequencies(E, m_.rope_theta, m_.rope_scaling),
                                   s_.tokens, type_, device_);
    one(StepOp::rope, StepPass::forward, [&] { rope::rotate(qkv, H + K, table, {}, /*inverse=*/false); });
    one(StepOp::attention, StepPass::forward, [&] { attention::forward(qkv, H, K, {}); });
    const auto saved = attention::forward(qkv, H, K, {});
    use_(
        {"attention backward with rope's",
         find(StepOp::attention, StepPass::backward).value() + find(StepOp::rope, StepPass::backward).value(),
         {},
         [&] { attention::backward_through_rope(dy, qkv, saved, H, K, {}, table, {}); }});
  }

  void gate() const {
    const at::Tensor values = normal({N_, 2 * m_.ffn}), upstream = normal({N_, m_.ffn}),
                     gate_up = values.clone(), dy = upstream.clone();
    one(StepOp::swiglu, StepPass::forward, [&] { swiglu::forward(values); });
    one(
        StepOp::swiglu, StepPass::backward, [&] { swiglu::backward(dy, gate_up); },
        [&] {
          dy.copy_(upstream);
          gate_up.copy_(values);
        });
  }

  void lose() const {
    const at::Tensor values = normal({s_.head_rows, columns_}).narrow(1, 0, m_.vocab),
                     logits = normal({s_.head_rows, columns_}).narrow(1, 0, m_.vocab),
                     targets = ids(s_.head_rows);
    const Normalizer tokens = at::full({}, static_cast<double>(N_), values.options().dtype(at::kDouble));
    one(
        StepOp::cross_entropy, StepPass::forward,
        [&] { cross_entropy::forward_backward(logits, targets, tokens, 0); }, [&] { logits.copy_(values); });
  }

  /// `whole` for `part` of its `all` parameters.
  static StepOpCount share(StepOpCount whole, std::int64_t part, std::int64_t all) {
    whole.calls *= static_cast<double>(all) / static_cast<double>(part);
    whole.flops.vector = whole.flops.vector.divided_exactly_by(all) * part;
    whole.bytes = whole.bytes.divided_exactly_by(all) * part;
    return whole;
  }

  void optimise() const {
    const std::int64_t all = spec::parameter_count(m_).to_int64(), part = std::min(all, most_parameters);
    const at::ScalarType states = type_ == at::kBFloat16 && s_.states == Dtype::bf16 ? at::kBFloat16 : wide_;
    const at::Tensor weight = normal({part}), gradient = normal({part}).to(wide_),
                     master = states == type_ ? weight : weight.to(states), m1 = zeros({part}, states),
                     m2 = zeros({part}, states),
                     coefficient = at::ones({}, gradient.options().dtype(at::kDouble));
    const auto name = [](StepOp op) { return name_of(op, StepPass::update); };
    const StepOpCount zeroing = find(StepOp::zero_gradients, StepPass::update).value();
    const at::Tensor sums =
        zeros({zeroing.bytes.divided_exactly_by(gradient.element_size()).to_int64()}, wide_);
    use_({name(StepOp::zero_gradients), zeroing, {}, [&] { zero_gradients(sums); }});
    use_({name(StepOp::clip_grad_norm),
          share(find(StepOp::clip_grad_norm, StepPass::update).value(), part, all),
          {},
          [&] { clip_grad_norm::sum_of_squares(gradient); }});
    const adamw::Settings settings{.learning_rate = 1e-3,
                                   .beta1 = 0.9,
                                   .beta2 = 0.95,
                                   .eps = 1e-8,
                                   .weight_decay = 0.1,
                                   .step = 7,
                                   .gradient_scale = 1};
    use_({name(StepOp::adamw), share(find(StepOp::adamw, StepPass::update).value(), part, all), {}, [&] {
            adamw::update_guarded(weight, master, gradient, m1, m2, settings, coefficient);
          }});
  }

  const spec::ModelSpec& m_;
  const spec::time::StepShape& s_;
  const at::Device device_;
  const std::function<void(const OpCall&)>& use_;
  const std::vector<StepOpCount> ops_;
  const std::int64_t N_, columns_;
  const at::ScalarType type_, wide_;
};

}  // namespace

std::int64_t head_columns(const spec::ModelSpec& model, Dtype dtype, at::Device device) {
  return device.is_cuda() ? lm_head::padded_vocabulary(model.vocab, element_bytes(dtype)) : model.vocab;
}

spec::time::StepShape trainer_shape(const spec::ModelSpec& model, spec::time::StepShape shape,
                                    at::Device device) {
  if (shape.head_rows == 0)
    shape.head_rows =
        lm_head::chunk_tokens(shape.micro * shape.tokens, head_columns(model, shape.dtype, device));
  return shape;
}

void for_each_op(const spec::ModelSpec& model, spec::time::StepShape shape, at::Device device,
                 const std::function<void(const OpCall&)>& use) {
  const spec::time::StepShape whole = trainer_shape(model, shape, device);
  OpCalls(model, whole, device, use).all();
}

}  // namespace assay::impl::bench
