#pragma once
// The trainer without its loop: one rank's buffers, model and executor, fed with the batches of reference
// tests.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/data/document_offsets.hpp"
#include "impl/model/token_batch.hpp"
#include "impl/params/layouts/make_parameters.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "impl/step/executor.hpp"
#include "reference/model/batch.hpp"
#include "spec/schedule/actions.hpp"
#include "tests/support/compare.hpp"

namespace assay::tests {

/// A reference batch as the tensors that the trainer reads.
inline impl::TokenBatch token_batch(const reference::Batch& batch, at::Device device) {
  const auto tensor = [&](const std::vector<std::int64_t>& values, at::ScalarType type) {
    if (values.empty()) return at::Tensor();
    return at::tensor(values, at::kLong).to(type).to(device);
  };
  impl::TokenBatch out;
  out.B = batch.B, out.T = batch.T;
  out.inputs = tensor(batch.ids, at::kLong);
  out.targets = tensor(batch.targets, at::kLong);
  out.positions = tensor(batch.positions, at::kInt).view({batch.B, batch.T});
  if (batch.documents.empty()) return out;
  const std::vector<std::int32_t> offsets = impl::data::document_offsets(
      std::vector<std::int32_t>(batch.documents.begin(), batch.documents.end()), batch.T);
  out.documents = {tensor(batch.documents, at::kInt).view({batch.B, batch.T}),
                   at::tensor(offsets, at::kInt).to(device), offsets};
  return out;
}

/// One parameter of a flat buffer, widened to fp64.
inline Values values(const at::Tensor& flat, const spec::Parameter& parameter) {
  const at::Tensor wide =
      flat.narrow(0, parameter.offset, parameter.size).to(at::kCPU, at::kDouble).contiguous();
  const double* data = wide.const_data_ptr<double>();
  return {parameter.shape, {data, data + wide.numel()}};
}

class StepRunner {
 public:
  /// Every rank replicates everything.
  StepRunner(const spec::ModelSpec& model, Dtype dtype, at::Device device, impl::Communicator& communicator,
             const impl::run::StepSettings& settings, std::uint64_t seed,
             spec::Recompute recompute = spec::Recompute::norms_swiglu)
      : StepRunner(model, dtype, device, communicator,
                   spec::layout_of(spec::DataParallel::replicate, communicator.size()), settings, seed,
                   Dtype::f32, Dtype::f32, recompute) {}

  /// `states` and `wire` count for bf16 weights.
  StepRunner(const spec::ModelSpec& model, Dtype dtype, at::Device device, impl::Communicator& communicator,
             const spec::Layout& layout, const impl::run::StepSettings& settings, std::uint64_t seed,
             Dtype states = Dtype::f32, Dtype wire = Dtype::f32,
             spec::Recompute recompute = spec::Recompute::norms_swiglu,
             const spec::LinearPrecision& linear = {}, std::int64_t tensor_ranks = 1,
             std::int64_t expert_ranks = 1)
      : device_(device),
        context_(model.context),
        rank_model_(spec::tensor_model(model, tensor_ranks)),
        whole_model_(model),
        place_{layout, tensor_ranks, expert_ranks, communicator.rank()},
        groups_(communicator, spec::groups_of(model, place_)),
        buffers_(impl::allocate(model, dtype, device, states, place_)),
        parameters_(impl::make_parameters(buffers_, rank_model_, groups_,
                                          impl::scalar_type(dtype == Dtype::bf16 ? wire : dtype), linear)),
        model_(rank_model_, *parameters_, model.context, impl::scalar_type(dtype), device, recompute, linear,
               {.ranks = tensor_ranks > 1 ? &groups_.tensor() : nullptr, .vocab = model.vocab},
               &groups_.expert()),
        clock_(device),
        executor_(model_, buffers_, *parameters_, groups_, settings, clock_) {
    impl::initialise(buffers_, model, seed);
    parameters_->weights_changed();
  }

  /// One optimizer step on this rank's micro-batches; `valid_tokens` counts those of all ranks.
  /// `change`: a test's hand in what the step is given. `order` of passes, where it is not forward and
  /// backward in turn: m for the forward of micro-batch m, -1 - m for its backward.
  impl::run::StepResult step(const std::vector<reference::Batch>& micro_batches, double valid_tokens,
                             double learning_rate,
                             const std::function<void(impl::run::StepInput&)>& change = {},
                             const std::vector<int>& order = {}) {
    impl::run::StepInput input{step_++, learning_rate, valid_tokens, {}};
    for (const reference::Batch& batch : micro_batches) {
      // The loader's part: positions that lie on a device are not looked at again.
      const auto last = std::max_element(batch.positions.begin(), batch.positions.end());
      if (last != batch.positions.end() && *last >= context_)
        throw std::invalid_argument("position " + std::to_string(*last) +
                                    " of a batch, the model's context is " + std::to_string(context_) +
                                    " tokens");
      input.micro_batches.push_back(token_batch(batch, device_));
    }
    double tokens = 0;  // every rank has as many
    for (const reference::Batch& batch : micro_batches) tokens += static_cast<double>(batch.B * batch.T);
    input.tokens = tokens * groups_.batch().size();
    if (change) change(input);
    const auto accumulation = static_cast<std::int64_t>(micro_batches.size());
    return executor_.run(input, order.empty() ? spec::step_actions(accumulation, groups_.reduced())
                                              : actions_of(order, accumulation));
  }

  /// Steps done before the next one.
  void set_step(std::int64_t step) { step_ = step; }
  impl::ParameterBuffers& buffers() { return buffers_; }
  impl::ParameterLayout& parameters() { return *parameters_; }
  impl::LayoutGroups& groups() { return groups_; }
  /// Of rank `rank` of all.
  spec::Share share(std::int64_t rank) const {
    spec::Place place = place_;
    place.rank = rank;
    return spec::share(whole_model_, place);
  }
  spec::Share share() const { return share(place_.rank); }
  impl::run::Executor& executor() { return executor_; }
  impl::Model& model() { return model_; }

 private:
  std::vector<spec::Action> actions_of(const std::vector<int>& order, std::int64_t accumulation) const {
    using Kind = spec::ActionKind;
    std::vector<spec::Action> out;
    for (const int pass : order) {
      out.push_back({pass < 0 ? Kind::backward : Kind::forward, pass < 0 ? -1 - pass : pass});
      if (pass < 0 && groups_.reduced().shards_weights() && groups_.reduced().ranks > 1)
        out.push_back({Kind::reduce_scatter, -1 - pass});
    }
    for (const spec::Action& action : spec::step_actions(accumulation, groups_.reduced()))
      if (action.micro_batch < 0) out.push_back(action);
    spec::check_actions(out, accumulation, groups_.reduced());
    return out;
  }

  at::Device device_;
  std::int64_t context_;
  spec::ModelSpec rank_model_;  ///< what one tensor rank computes
  spec::ModelSpec whole_model_;
  spec::Place place_;
  impl::LayoutGroups groups_;
  impl::ParameterBuffers buffers_;
  std::unique_ptr<impl::ParameterLayout> parameters_;
  impl::Model model_;
  impl::run::PhaseClock clock_;
  impl::run::Executor executor_;
  std::int64_t step_ = 0;
};

}  // namespace assay::tests
