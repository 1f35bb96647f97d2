#include "impl/params/layouts/expert_parameters.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

namespace {
/// `dense` with the routed experts of `experts`.
template <class Block>
const Block& put_together(Block& into, const Block& dense, const Block& experts) {
  into = dense;
  into.decoder.experts_gate_up = experts.decoder.experts_gate_up;
  into.decoder.experts_down = experts.decoder.experts_down;
  return into;
}

std::string first_of(std::string a, std::string b) { return a.empty() ? std::move(b) : std::move(a); }
}  // namespace

ExpertParameters::ExpertParameters(std::unique_ptr<ParameterLayout> dense,
                                   std::unique_ptr<ParameterLayout> experts, Communicator& group,
                                   bool counted, std::int64_t blocks)
    : dense_(std::move(dense)),
      experts_(std::move(experts)),
      group_(group),
      counted_(counted),
      weights_(static_cast<std::size_t>(blocks)),
      gradients_(static_cast<std::size_t>(blocks)) {}

const BlockWeights& ExpertParameters::acquire(std::int64_t block, Weights as) {
  const BlockWeights& dense = dense_->acquire(block, as);
  return put_together(weights_.at(static_cast<std::size_t>(block)), dense, experts_->acquire(block, as));
}

void ExpertParameters::release(std::int64_t block) {
  dense_->release(block);
  experts_->release(block);
}

BlockGradients ExpertParameters::gradients(std::int64_t block) {
  const BlockGradients dense = dense_->gradients(block), experts = experts_->gradients(block);
  return {put_together(gradients_.at(static_cast<std::size_t>(block)), dense.views, experts.views), dense.sum,
          experts.sum};
}

void ExpertParameters::gradients_ready(std::int64_t block) {
  dense_->gradients_ready(block);
  experts_->gradients_ready(block);
}

void ExpertParameters::begin_step(linear::GradientSum first) {
  dense_->begin_step(first);
  experts_->begin_step(first);
}

void ExpertParameters::begin_forward() {
  dense_->begin_forward();
  experts_->begin_forward();
}

void ExpertParameters::begin_backward(bool last_micro_batch) {
  dense_->begin_backward(last_micro_batch);
  experts_->begin_backward(last_micro_batch);
}

void ExpertParameters::all_reduce() {
  dense_->all_reduce();
  experts_->all_reduce();
}

void ExpertParameters::reduce_scatter() {
  dense_->reduce_scatter();
  experts_->reduce_scatter();
}

void ExpertParameters::all_gather() {
  dense_->all_gather();
  experts_->all_gather();
}

/// Each rank of a group counts its own experts.
at::Tensor ExpertParameters::sum_of_squares() {
  const at::Tensor dense = dense_->sum_of_squares();
  const at::Tensor experts = sum_in_rank_order(experts_->sum_of_squares(), group_);
  return counted_ ? dense + experts : dense;
}

void ExpertParameters::weights_changed() {
  dense_->weights_changed();
  experts_->weights_changed();
}

void ExpertParameters::settle_weights() {
  dense_->settle_weights();
  experts_->settle_weights();
}

void ExpertParameters::begin_search() {
  dense_->begin_search();
  experts_->begin_search();
}

std::string ExpertParameters::end_search() {
  std::string dense = dense_->end_search();
  return first_of(std::move(dense), experts_->end_search());
}

std::string ExpertParameters::non_finite_sum() const {
  return first_of(dense_->non_finite_sum(), experts_->non_finite_sum());
}

}  // namespace assay::impl
