// labels: unit property
// Steps with auxiliary losses of routers, in fp64 on a CPU, are those of the reference; losses, loads and
// gradients depend on the batch alone, not on micro-batches, ranks or what is computed again.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tensors.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::experts_step_test {
namespace {

using spec::Recompute;

run::StepSettings settings() {
  return {.adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-5, .weight_decay = 0.1},
          .clip = 1,
          .z_loss = 1e-3,
          .balance = 0.3,
          .router_z = 0.05};
}

std::vector<double> numbers(const run::StepResult& result) {
  const run::RoutingResult& routing = result.routing.value();
  return {result.cross_entropy, result.z_loss,      result.gradient_norm, routing.balance,
          routing.router_z,     routing.worst_load, routing.mean_load,    routing.entropy};
}

struct Drawn {
  std::uint64_t seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  spec::ModelSpec model = tests::sparse_model(seed);
  reference::Batch batch = tests::tiny_batch(
      model, 4, *rc::gen::inRange<std::int64_t>(1, 8),
      *rc::gen::element(tests::Documents::whole, tests::Documents::packed), tests::Ignored::some, seed);
  double valid() const { return static_cast<double>(batch.valid_tokens()); }
};

/// The parameters of a whole buffer, without what layouts leave between blocks.
at::Tensor parameters_of(tests::StepRunner& runner, const at::Tensor& buffer) {
  std::vector<at::Tensor> all;
  for (const spec::Parameter& parameter : runner.buffers().inventory.parameters)
    all.push_back(buffer.narrow(0, parameter.offset, parameter.size));
  return at::cat(all);
}

/// What a step leaves behind.
struct Stepped {
  run::StepResult result;
  at::Tensor gradients, master;
};

Stepped step(const Drawn& d, std::int64_t micro, Recompute recompute = Recompute::norms_swiglu) {
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, settings(), d.seed, recompute);
  const auto result = runner.step(tests::micro_batches(d.batch, micro), d.valid(), 3e-3);
  return {result, parameters_of(runner, runner.buffers().gradients),
          parameters_of(runner, runner.buffers().master)};
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

void expect_same(const run::StepResult& got, const run::StepResult& wanted) {
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) RC_ASSERT(std::abs(a[i] - b[i]) <= 1e-12 * std::abs(b[i]));
}

RC_GTEST_PROP(ExpertsStepImpl, StepsAreTheReferences, ()) {
  const Drawn d;
  const run::StepSettings s = settings();
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, s, d.seed);
  reference::TrainState state = reference::initial_state(d.model, d.seed);
  const auto near = [](double got, double wanted) {
    RC_ASSERT(std::abs(got - wanted) <= 1e-11 * std::abs(wanted));
  };
  const reference::balancing::Settings balancing{.form = spec::load_balancing::Form::sequence,
                                                 .coefficient = s.balance,
                                                 .router_z_coefficient = s.router_z};
  for (int number = 0; number < 4; ++number) {
    const auto batch = tests::tiny_batch(
        d.model, 4, d.batch.T, number % 2 ? tests::Documents::packed : tests::Documents::whole,
        static_cast<tests::Ignored>(number), d.seed + static_cast<std::uint64_t>(number));
    const auto result = runner.step(tests::micro_batches(batch, number % 2 ? 1 : 2),
                                    static_cast<double>(batch.valid_tokens()), 3e-3);
    const auto loads =
        reference::step_gradients(state.parameters, d.model, {batch}, s.z_loss, {}, balancing).balance.counts;
    const auto expected = reference::train_step(state, d.model, {batch},
                                                {.beta1 = s.adamw.beta1,
                                                 .beta2 = s.adamw.beta2,
                                                 .eps = s.adamw.eps,
                                                 .weight_decay = s.adamw.weight_decay,
                                                 .clip = s.clip,
                                                 .z_loss = s.z_loss,
                                                 .balancing = balancing},
                                                3e-3);
    double worst = 0;
    for (const std::vector<reference::Index>& layer : loads)
      for (const reference::Index load : layer)
        worst = std::max(worst, static_cast<double>(load * d.model.experts->count) /
                                    static_cast<double>(batch.B * batch.T * d.model.experts->active));
    near(result.routing->worst_load, worst);
    near(result.cross_entropy, expected.cross_entropy);
    near(result.routing->balance, expected.balance);
    near(result.routing->router_z, expected.router_z);
    near(result.gradient_norm, expected.gradient_norm);
    RC_ASSERT(tests::distance(runner.buffers().master, runner.buffers().inventory, state.parameters) <=
              1e-11);
  }
}

/// f is a sequence's own, so that a batch's balance loss is the mean of those of its sequences; a token's
/// z-loss and entropy are its own.
RC_GTEST_PROP(ExpertsStepImpl, LossesAreMeansOverSequences, ()) {
  const Drawn d;
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, settings(), d.seed);
  double balance = 0, router_z = 0, entropy = 0;
  for (std::int64_t b = 0; b < d.batch.B; ++b) {
    const auto result = runner.step({tests::sequences(d.batch, b, b + 1)}, d.valid(), 0);
    balance += result.routing->balance / 4;
    router_z += result.routing->router_z / 4;
    entropy += result.routing->entropy / 4;
  }
  const auto whole = runner.step({d.batch}, d.valid(), 0);
  RC_ASSERT(std::abs(whole.routing->balance - balance) <= 1e-12 * balance);
  RC_ASSERT(std::abs(whole.routing->router_z - router_z) <= 1e-12 * router_z);
  RC_ASSERT(std::abs(whole.routing->entropy - entropy) <= 1e-12 * (1 + entropy));
}

RC_GTEST_PROP(ExpertsStepImpl, MicroBatchesGiveTheSameNumbers, ()) {
  const Drawn d;
  const Stepped whole = step(d, 4);
  for (const std::int64_t micro : {1, 2}) {
    const Stepped split = step(d, micro);
    expect_same(split.result, whole.result);
    RC_ASSERT(apart(split.gradients, whole.gradients) <= 1e-12);
    RC_ASSERT(apart(split.master, whole.master) <= 1e-11);
  }
}

RC_GTEST_PROP(ExpertsStepImpl, EverySettingOfRecomputeGivesTheSameBits, ()) {
  const Drawn d;
  const auto micro = *rc::gen::element<std::int64_t>(1, 2, 4);
  const Stepped kept = step(d, micro, Recompute::none);
  for (const Recompute recompute : {Recompute::norms_swiglu, Recompute::attention, Recompute::block}) {
    const Stepped again = step(d, micro, recompute);
    RC_ASSERT(numbers(again.result) == numbers(kept.result));
    RC_ASSERT(at::equal(again.gradients, kept.gradients));
    RC_ASSERT(at::equal(again.master, kept.master));
  }
}

RC_GTEST_PROP(ExpertsStepImpl, EveryLayoutGivesTheSameNumbers, ()) {
  const Drawn d;
  const Stepped one = step(d, 4);
  const auto data = *rc::gen::element(spec::DataParallel::replicate, spec::DataParallel::zero1,
                                      spec::DataParallel::shard, spec::DataParallel::hybrid);
  const int ranks = data == spec::DataParallel::hybrid ? 4 : 2;
  tests::on_thread_ranks(ranks, [&](Communicator& communicator) {
    tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, communicator,
                             spec::layout_of(data, ranks, ranks / 2), settings(), d.seed);
    const auto result = runner.step(
        tests::dealt(d.batch, {.micro = 1, .accumulation = 4 / ranks}, ranks, communicator.rank()), d.valid(),
        3e-3);
    expect_same(result, one.result);
    runner.parameters().settle_weights();
    RC_ASSERT(apart(parameters_of(runner, tests::whole_of(runner, runner.buffers().master)), one.master) <=
              1e-11);
  });
}

TEST(ExpertsStepImpl, ADenseModelHasNoRouting) {
  const auto communicator = make_self_communicator();
  const spec::ModelSpec model = tests::tiny_model(3);
  tests::StepRunner runner(model, Dtype::f64, at::kCPU, *communicator, settings(), 3);
  const auto batch = tests::tiny_batch(model, 3);
  EXPECT_FALSE(runner.step({batch}, static_cast<double>(batch.valid_tokens()), 3e-3).routing.has_value());
}

}  // namespace
}  // namespace assay::impl::experts_step_test
