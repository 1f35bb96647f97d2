#include "impl/bench/op_calls.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <vector>

#include "impl/model/model.hpp"
#include "impl/ops/adamw/adamw.hpp"
#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "impl/params/optimizer.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/model/inventory.hpp"
#include "spec/step/paper/run.hpp"

namespace assay::impl::bench {
namespace {

using spec::time::StepOp;
using spec::time::StepOpCount;
using spec::time::StepPass;

constexpr std::int64_t most_parameters = std::int64_t{1} << 28;

/// Normal weights and gradients of a model, without an optimizer's state.
class Parameters final : public ParameterAccess {
 public:
  Parameters(const spec::memory::Setting& setting, at::Device device)
      : inventory_(spec::inventory(setting.model)),
        gain_offsets_(spec::norm_gains(inventory_)),
        weights_(
            at::empty({inventory_.flat_size}, at::TensorOptions(device).dtype(scalar_type(setting.dtype)))
                .normal_(0, setting.model.init_std)),
        gains_(at::ones({gain_offsets_.flat_size}, weights_.options().dtype(sums_of(setting.dtype)))),
        gradients_(at::zeros({inventory_.flat_size}, gains_.options())) {
    for (std::int64_t block = 0; block < inventory_.blocks; ++block) {
      of_weights_.push_back(views(weights_, inventory_, gains_, gain_offsets_, setting.model, block));
      of_gradients_.push_back(views(gradients_, inventory_, setting.model, block));
      at::Tensor& bias = of_weights_.back().decoder.router_bias;
      if (bias.defined()) bias = bias.to(gains_.scalar_type());
    }
  }
  static at::ScalarType sums_of(Dtype dtype) {
    return dtype == Dtype::bf16 ? at::kFloat : scalar_type(dtype);
  }

  const BlockWeights& acquire(std::int64_t block, Weights) override {
    return of_weights_.at(static_cast<std::size_t>(block));
  }
  void release(std::int64_t) override {}
  BlockGradients gradients(std::int64_t block) override {
    return {of_gradients_.at(static_cast<std::size_t>(block)), linear::GradientSum::starts};
  }
  void gradients_ready(std::int64_t) override {}

 private:
  const spec::Inventory inventory_, gain_offsets_;
  const at::Tensor weights_, gains_, gradients_;
  std::vector<BlockWeights> of_weights_;
  std::vector<BlockViews> of_gradients_;
};

/// Hands the ops of a run to `use`. The run on paper makes the same calls in the same order and says what
/// each of them is.
class Observer final : public OpObserver {
 public:
  Observer(const spec::memory::Setting& setting, const std::function<void(const OpCall&)>& use)
      : whole_(spec::paper::step_ops(setting)), use_(use) {
    spec::memory::Setting one = setting;
    one.model.layers = 1, one.micro_batches = 1;
    spec::paper::Trace trace = spec::paper::trace(one);
    calls_ = spec::paper::calls_of(trace);
    counts_.resize(trace.memory.size());
    for (spec::paper::OpRecord& record : trace.ops) counts_[record.op].push_back(record.count);
  }

  void op(std::initializer_list<at::Tensor> overwritten, const std::function<void()>& call) override {
    const std::vector<StepOpCount>& counts = counts_.at(calls_.at(number_++));
    const StepOpCount& first = counts.at(0);
    if (first.pass == StepPass::recompute || !seen_.insert({first.op, first.pass}).second) return;
    std::vector<at::Tensor> before;
    for (const at::Tensor& tensor : overwritten) before.push_back(tensor.clone());
    const auto restore = [&] {
      for (std::size_t i = 0; i < before.size(); ++i) (overwritten.begin() + i)->copy_(before[i]);
    };
    OpCall made = in_a_step(first, call);
    for (std::size_t more = 1; more < counts.size(); ++more) {
      made.name += " with " + std::string(to_string(counts[more].op)) + "'s";
      made.count.flops = made.count.flops + counts[more].flops;
      made.count.bytes += counts[more].bytes;
    }
    if (!before.empty()) made.prepare = restore;
    use_(made);
    restore();
  }

 private:
  OpCall in_a_step(StepOpCount one, const std::function<void()>& call) const {
    double bytes = 0;
    one.calls = 0;
    for (const StepOpCount& each : whole_)
      if (each.op == one.op && each.pass == one.pass) {
        one.calls += each.calls;
        bytes += each.calls * each.bytes.to_double();
      }
    return {.name = name_of(one.op, one.pass),
            .count = one,
            .equal_calls = bytes / one.bytes.to_double(),
            .prepare = {},
            .call = call};
  }

  const std::vector<StepOpCount> whole_;
  const std::function<void(const OpCall&)>& use_;
  std::vector<std::size_t> calls_;                ///< what each call of the run is on paper
  std::vector<std::vector<StepOpCount>> counts_;  ///< of each call on paper
  std::set<std::pair<StepOp, StepPass>> seen_;
  std::size_t number_ = 0;
};

at::Tensor even_shares(const spec::ModelSpec& model, at::Device device) {
  const std::int64_t X = model.experts->count;
  return at::full({model.sparse_layers(), X}, 1 / static_cast<double>(X),
                  at::TensorOptions(device).dtype(at::kDouble));
}

void model_ops(const spec::memory::Setting& setting, at::Device device,
               const std::function<void(const OpCall&)>& use) {
  spec::memory::Setting one = setting;
  one.model.layers = 1;
  const std::int64_t N = setting.micro * setting.sequence_length;
  const auto ids = [&] {
    return at::randint(setting.model.vocab, {N}, at::TensorOptions(device).dtype(at::kLong));
  };
  const TokenBatch batch{.B = setting.micro,
                         .T = setting.sequence_length,
                         .inputs = ids(),
                         .targets = ids(),
                         .positions = {},
                         .documents = {}};
  const Normalizer tokens =
      at::full({}, static_cast<double>(N), at::TensorOptions(device).dtype(at::kDouble));
  Parameters parameters(one, device);
  Observer observer(setting, use);
  Model model(one.model, parameters, setting.sequence_length, scalar_type(setting.dtype), device,
              setting.recompute);
  model.limit_chunks(setting.chunk_logits);
  model.attend_by(setting.attention);
  model.observe(&observer);
  const router::Auxiliary auxiliary{
      .balance = setting.auxiliary.probabilities ? 0.01 : 0,
      .z = setting.auxiliary.logits ? 1e-3 : 0,
      .tokens = tokens,
      .shares = setting.auxiliary.of_batch ? even_shares(one.model, device) : at::Tensor(),
      .capacity = setting.capacity};
  Activations saved;
  model.forward(batch, tokens, 0, saved, auxiliary);
  model.backward(batch, std::move(saved), auxiliary);
}

/// `count` for `part` of its `all` parameters.
OpCall for_part(StepOpCount count, std::int64_t part, std::int64_t all, std::function<void()> call) {
  count.flops.vector = count.flops.vector.divided_exactly_by(all) * part;
  count.bytes = count.bytes.divided_exactly_by(all) * part;
  return {.name = name_of(count.op, count.pass),
          .count = count,
          .equal_calls = count.calls * static_cast<double>(all) / static_cast<double>(part),
          .prepare = {},
          .call = std::move(call)};
}

void optimizer_ops(const spec::memory::Setting& setting, at::Device device,
                   const std::function<void(const OpCall&)>& use) {
  const auto counts = spec::time::optimizer_ops(share_of(setting), setting.dtype, setting.states);
  const auto count = [&](StepOp op) {
    return *std::find_if(counts.begin(), counts.end(),
                         [&](const StepOpCount& each) { return each.op == op; });
  };
  const std::int64_t all = spec::parameter_count(setting.model).to_int64(),
                     part = std::min(all, most_parameters);
  const at::ScalarType type = scalar_type(setting.dtype), wide = Parameters::sums_of(setting.dtype),
                       states = type == at::kBFloat16 && setting.states == Dtype::bf16 ? at::kBFloat16 : wide;
  const auto of = [&](at::ScalarType element) { return at::TensorOptions(device).dtype(element); };
  const at::Tensor weight = at::empty({part}, of(type)).normal_(0, 0.5),
                   gradient = at::empty({part}, of(wide)).normal_(0, 0.5),
                   master = states == type ? weight : weight.to(states), m1 = at::zeros({part}, of(states)),
                   m2 = at::zeros({part}, of(states)), coefficient = at::ones({}, of(at::kDouble));
  const StepOpCount zeroing = count(StepOp::zero_gradients);
  const at::Tensor sums =
      at::zeros({zeroing.bytes.divided_exactly_by(gradient.element_size()).to_int64()}, of(wide));
  use(for_part(zeroing, 1, 1, [&] { zero_gradients(sums); }));
  use(for_part(count(StepOp::clip_grad_norm), part, all, [&] { clip_grad_norm::sum_of_squares(gradient); }));
  const adamw::Settings settings{.learning_rate = 1e-3,
                                 .beta1 = 0.9,
                                 .beta2 = 0.95,
                                 .eps = 1e-8,
                                 .weight_decay = 0.1,
                                 .step = 7,
                                 .gradient_scale = 1};
  use(for_part(count(StepOp::adamw), part, all,
               [&] { adamw::update_guarded(weight, master, gradient, m1, m2, settings, coefficient); }));
}

}  // namespace

void for_each_op(const spec::memory::Setting& setting, at::Device device,
                 const std::function<void(const OpCall&)>& use) {
  model_ops(setting, device, use);
  optimizer_ops(setting, device, use);
}

}  // namespace assay::impl::bench
