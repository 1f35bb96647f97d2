#pragma once
// What each op of a step finds in memory and takes, by a device's allocator, beside the run on paper. Whole
// steps are compared elsewhere; here a tensor that is freed one op too late shows where it happens.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "impl/model/model.hpp"
#include "impl/params/layouts/make_parameters.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/impl/comm/solo_communicator.hpp"

namespace assay::tests {

/// Reads a device's allocator [B].
struct Meter {
  std::function<std::int64_t()> held;
  std::function<std::int64_t()> most;  ///< at a time since `restart`
  std::function<void()> restart;
};

/// Notes memory where ops begin.
class MemoryObserver final : public impl::OpObserver {
 public:
  explicit MemoryObserver(const Meter& meter) : meter_(meter), base_(meter.held()) {}
  void op(std::initializer_list<at::Tensor>, const std::function<void()>&) override {
    end();
    before.push_back(meter_.held() - base_);
    meter_.restart();
  }
  /// The last op is done.
  void end() {
    if (!before.empty()) most.push_back(meter_.most() - base_);
  }
  std::vector<std::int64_t> before, most;  ///< of each op

 private:
  const Meter& meter_;
  const std::int64_t base_;
};

/// One micro-batch of `setting`, forward and backward. `slack`: what the allocator may count beyond the plan
/// [B]: a step's scalars and its own rounding. `prepare` runs the model once before, where libraries allocate
/// on first use.
inline void compare_op_memory(const spec::memory::Setting& setting, at::Device device, const Meter& meter,
                              std::int64_t slack, bool prepare = false) {
  const std::int64_t N = setting.micro * setting.sequence_length;
  const auto ids = [&] {
    return at::randint(setting.model.vocab, {N}, at::TensorOptions(device).dtype(at::kLong));
  };
  impl::TokenBatch batch;
  batch.B = setting.micro, batch.T = setting.sequence_length;
  batch.inputs = ids(), batch.targets = ids();
  if (setting.sources > 0)
    batch.sources = at::zeros({setting.micro}, at::TensorOptions(device).dtype(at::kLong));
  SoloCommunicator ranks(static_cast<int>(setting.layout.ranks), 0);
  impl::LayoutGroups groups(ranks, setting.layout);
  impl::ParameterBuffers buffers =
      impl::allocate(setting.model, setting.dtype, device, setting.states, {.layout = setting.layout});
  impl::initialise(buffers, setting.model, 5);
  const auto parameters =
      impl::make_parameters(buffers, setting.model, groups, buffers.gradients.scalar_type(), setting.linear);
  parameters->weights_changed();
  impl::Model model(setting.model, *parameters, setting.sequence_length, impl::scalar_type(setting.dtype),
                    device, setting.recompute, setting.linear);
  model.quantise_weights();
  const impl::Normalizer tokens =
      at::full({}, static_cast<double>(N), at::TensorOptions(device).dtype(at::kDouble));
  const std::int64_t X = setting.model.experts ? setting.model.experts->count : 1;
  const at::Tensor shares = at::full({std::max<std::int64_t>(setting.model.sparse_layers(), 1), X},
                                     1 / static_cast<double>(X), tokens.on(device).options());
  const impl::router::Auxiliary auxiliary{.balance = setting.auxiliary.probabilities ? 0.01 : 0,
                                          .z = setting.auxiliary.logits ? 1e-3 : 0,
                                          .tokens = tokens,
                                          .shares = setting.auxiliary.of_batch ? shares : at::Tensor(),
                                          .capacity = setting.capacity};
  const auto run = [&] {
    impl::Activations saved;
    parameters->begin_forward();
    model.forward(batch, tokens, 0, saved, auxiliary);
    parameters->begin_backward(/*last_micro_batch=*/true);
    model.backward(batch, std::move(saved), auxiliary);
  };
  model.limit_chunks(setting.chunk_logits);
  parameters->begin_step(impl::linear::GradientSum::starts);
  if (prepare) run();
  MemoryObserver observer(meter);
  model.observe(&observer);
  run();
  observer.end();
  const spec::paper::Trace paper = spec::paper::trace(setting);
  const std::vector<std::size_t> calls = spec::paper::calls_of(paper);
  ASSERT_EQ(observer.before.size(), calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const spec::paper::OpMemory& call = paper.memory[calls[i]];
    const std::string where = "op " + std::to_string(i) + ", " + std::string(to_string(call.op));
    for (const auto& [ours, planned] :
         {std::pair{observer.before[i], call.before.to_int64()}, {observer.most[i], call.most.to_int64()}}) {
      ASSERT_GE(ours, planned) << where;
      ASSERT_LE(ours, planned + slack) << where;
    }
  }
}

}  // namespace assay::tests
