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
          .router_z = 0.05,
          .bias_rate = 0.125};
}

std::vector<double> numbers(const run::StepResult& result) {
  const run::RoutingResult& routing = result.routing.value();
  return {result.cross_entropy, result.z_loss,    result.gradient_norm,
          routing.balance,      routing.router_z, routing.worst_load,
          routing.mean_load,    routing.entropy,  routing.dropped.value_or(0)};
}

struct Drawn {
  std::uint64_t seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  spec::ModelSpec model = tests::routed_model(seed);
  reference::Batch batch = tests::tiny_batch(
      model, 4, *rc::gen::inRange<std::int64_t>(1, 8),
      *rc::gen::element(tests::Documents::whole, tests::Documents::packed), tests::Ignored::some, seed);
  run::StepSettings settings = draw_settings();

  static run::StepSettings draw_settings() {
    run::StepSettings drawn = experts_step_test::settings();
    drawn.balance_of_batch = *rc::gen::arbitrary<bool>();
    drawn.capacity = *rc::gen::element(0.0, 1.0, 1.25);
    return drawn;
  }
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
  at::Tensor gradients, master, biases;
};

/// Of no entries where the model has none.
at::Tensor biases_of(tests::StepRunner& runner) {
  const at::Tensor& biases = runner.buffers().router_biases;
  return biases.defined() ? biases.clone() : at::zeros({0}, at::kDouble);
}

Stepped step(const Drawn& d, std::int64_t micro, Recompute recompute = Recompute::norms_swiglu) {
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, d.settings, d.seed, recompute);
  const auto result = runner.step(tests::micro_batches(d.batch, micro), d.valid(), 3e-3);
  return {result, parameters_of(runner, runner.buffers().gradients),
          parameters_of(runner, runner.buffers().master), biases_of(runner)};
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

void expect_same(const run::StepResult& got, const run::StepResult& wanted) {
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) RC_ASSERT(std::abs(a[i] - b[i]) <= 1e-12 * std::abs(b[i]));
  RC_ASSERT(got.routing->dropped == wanted.routing->dropped);  // a count over a count
}

/// -sum p ln p of the reference's probabilities, over tokens, mean over tokens and sparse layers.
double entropy_of(const reference::Parameters<double>& parameters, const spec::ModelSpec& model,
                  const std::vector<reference::Batch>& passes,
                  const reference::balancing::Settings& balancing) {
  double sum = 0, rows = 0;
  for (const reference::Batch& pass : passes) {
    const auto forward =
        reference::model::forward(parameters, model, pass, {}, {}, balancing.capacity_factor);
    for (reference::Index layer = 0; layer < model.layers; ++layer) {
      if (!model.sparse(layer)) continue;
      const auto p = reference::router::probabilities(
          forward.blocks[static_cast<std::size_t>(layer)].experts.router.scores, *model.experts);
      for (reference::Index i = 0; i < p.size(); ++i)
        if (p[i] > 0) sum -= p[i] * std::log(p[i]);
      rows += static_cast<double>(p.extent(0));
    }
  }
  return sum / rows;
}

RC_GTEST_PROP(ExpertsStepImpl, StepsAreTheReferences, ()) {
  const Drawn d;
  const run::StepSettings& s = d.settings;
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, s, d.seed,
                           *rc::gen::elementOf(spec::all_recomputes));
  reference::TrainState state = reference::initial_state(d.model, d.seed);
  const auto near = [](double got, double wanted) {
    RC_ASSERT(std::abs(got - wanted) <= 1e-11 * std::abs(wanted));
  };
  const reference::balancing::Settings balancing = tests::balancing_of(s);
  for (int number = 0; number < 4; ++number) {
    const auto batch = tests::tiny_batch(
        d.model, 4, d.batch.T, number % 2 ? tests::Documents::packed : tests::Documents::whole,
        static_cast<tests::Ignored>(number), d.seed + static_cast<std::uint64_t>(number));
    const auto passes = tests::micro_batches(batch, number % 2 ? 1 : 2);
    const auto result = runner.step(passes, static_cast<double>(batch.valid_tokens()), 3e-3);
    const auto loads =
        reference::step_gradients(state.parameters, d.model, passes, s.z_loss, {}, balancing).balance.counts;
    const double entropy = entropy_of(state.parameters, d.model, passes, balancing);
    const auto expected = reference::train_step(state, d.model, passes,
                                                {.beta1 = s.adamw.beta1,
                                                 .beta2 = s.adamw.beta2,
                                                 .eps = s.adamw.eps,
                                                 .weight_decay = s.adamw.weight_decay,
                                                 .clip = s.clip,
                                                 .z_loss = s.z_loss,
                                                 .balancing = balancing},
                                                3e-3);
    const auto sparse = static_cast<double>(d.model.sparse_layers());
    double worst = 0, mean = 0;
    for (const std::vector<reference::Index>& layer : loads) {
      double largest = 0;
      for (const reference::Index load : layer)
        largest = std::max(largest, static_cast<double>(load * d.model.experts->count) /
                                        static_cast<double>(batch.B * batch.T * d.model.experts->active));
      worst = std::max(worst, largest);
      mean += largest / sparse;
    }
    near(result.routing->worst_load, worst);
    near(result.routing->mean_load, mean);
    // In nat: of a probability near 1 the logarithm is near 0, and so is what it may be off by.
    RC_ASSERT(std::abs(result.routing->entropy - entropy) <= 1e-11 * (1 + entropy));
    near(result.cross_entropy, expected.cross_entropy);
    near(result.routing->balance, expected.balance);
    near(result.routing->router_z, expected.router_z);
    near(result.gradient_norm, expected.gradient_norm);
    RC_ASSERT(result.routing->dropped.has_value() == (s.capacity > 0));
    near(result.routing->dropped.value_or(0), expected.dropped);
    RC_ASSERT(tests::same_router_biases(runner.buffers(), state.parameters));
    RC_ASSERT(tests::distance(runner.buffers().master, runner.buffers().inventory, state.parameters) <=
              1e-11);
  }
}

/// f is a sequence's own, so that a batch's balance loss is the mean of those of its sequences; a token's
/// z-loss and entropy are its own.
RC_GTEST_PROP(ExpertsStepImpl, LossesAreMeansOverSequences, ()) {
  Drawn d;
  d.settings.balance_of_batch = false;
  d.settings.bias_rate = 0;
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, d.settings, d.seed);
  double balance = 0, router_z = 0, entropy = 0, dropped = 0;
  for (std::int64_t b = 0; b < d.batch.B; ++b) {
    const auto result = runner.step({tests::sequences(d.batch, b, b + 1)}, d.valid(), 0);
    balance += result.routing->balance / 4;
    router_z += result.routing->router_z / 4;
    entropy += result.routing->entropy / 4;
    dropped += result.routing->dropped.value_or(0) / 4;
  }
  const auto whole = runner.step({d.batch}, d.valid(), 0);
  RC_ASSERT(std::abs(whole.routing->balance - balance) <= 1e-12 * balance);
  RC_ASSERT(std::abs(whole.routing->router_z - router_z) <= 1e-12 * router_z);
  RC_ASSERT(std::abs(whole.routing->entropy - entropy) <= 1e-12 * (1 + entropy));
  RC_ASSERT(std::abs(whole.routing->dropped.value_or(0) - dropped) <= 1e-12);
}

RC_GTEST_PROP(ExpertsStepImpl, MicroBatchesGiveTheSameNumbers, ()) {
  Drawn d;
  d.settings.balance_of_batch = false;
  const Stepped whole = step(d, 4);
  for (const std::int64_t micro : {1, 2}) {
    const Stepped split = step(d, micro);
    expect_same(split.result, whole.result);
    RC_ASSERT(apart(split.gradients, whole.gradients) <= 1e-12);
    RC_ASSERT(apart(split.master, whole.master) <= 1e-11);
    RC_ASSERT(at::equal(split.biases, whole.biases));
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
    RC_ASSERT(at::equal(again.biases, kept.biases));
  }
}

RC_GTEST_PROP(ExpertsStepImpl, EveryLayoutGivesTheSameNumbers, ()) {
  const Drawn d;
  const auto data = *rc::gen::element(spec::DataParallel::replicate, spec::DataParallel::zero1,
                                      spec::DataParallel::shard, spec::DataParallel::hybrid);
  const int ranks = data == spec::DataParallel::hybrid ? 4 : 2;
  // The batch so far is what all ranks have worked on.
  const Stepped one = step(d, d.settings.balance_of_batch ? ranks : 4);
  tests::on_thread_ranks(ranks, [&](Communicator& communicator) {
    tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, communicator,
                             spec::layout_of(data, ranks, ranks / 2), d.settings, d.seed);
    const auto result = runner.step(
        tests::dealt(d.batch, {.micro = 1, .accumulation = 4 / ranks}, ranks, communicator.rank()), d.valid(),
        3e-3);
    expect_same(result, one.result);
    runner.parameters().settle_weights();
    RC_ASSERT(apart(parameters_of(runner, tests::whole_of(runner, runner.buffers().master)), one.master) <=
              1e-11);
    RC_ASSERT(at::equal(biases_of(runner), one.biases));
  });
}

/// Other passes may lie between a micro-batch's two.
RC_GTEST_PROP(ExpertsStepImpl, ABackwardReadsTheSharesOfItsOwnForward, ()) {
  Drawn d;
  d.settings.balance_of_batch = true;
  const auto communicator = make_self_communicator();
  std::vector<at::Tensor> gradients;
  for (const std::vector<int>& order : {std::vector<int>{0, -1, 1, -2}, {0, 1, -1, -2}}) {
    tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, *communicator, d.settings, d.seed);
    runner.step(tests::micro_batches(d.batch, 2), d.valid(), 3e-3, {}, order);
    gradients.push_back(parameters_of(runner, runner.buffers().gradients));
  }
  RC_ASSERT(apart(gradients[0], gradients[1]) <= 1e-12);
}

/// The whole batch as one micro-batch: then the batch so far is all of it, and ranks do not matter.
RC_GTEST_PROP(ExpertsStepImpl, WithoutAccumulationSharesAreTheWholeBatchs, ()) {
  Drawn d;
  d.settings.balance_of_batch = true;
  const Stepped one = step(d, 4);
  const auto parameters = reference::initial_parameters(d.model, d.seed);
  auto balancing = tests::balancing_of(d.settings);
  balancing.form = spec::load_balancing::Form::global;
  const auto expected =
      reference::step_gradients(parameters, d.model, {d.batch}, d.settings.z_loss, {}, balancing).balance;
  RC_ASSERT(std::abs(one.result.routing->balance - expected.balance) <= 1e-11 * expected.balance);
  for (const int ranks : {2, 4})
    tests::on_thread_ranks(ranks, [&](Communicator& communicator) {
      tests::StepRunner runner(d.model, Dtype::f64, at::kCPU, communicator, d.settings, d.seed);
      const auto mine = tests::dealt(d.batch, {.micro = 4 / ranks}, ranks, communicator.rank());
      expect_same(runner.step(mine, d.valid(), 3e-3), one.result);
    });
}

spec::ModelSpec biased_model() {
  for (std::uint64_t seed = 0;; ++seed)
    if (const spec::ModelSpec model = tests::routed_model(seed);
        model.experts->router_bias && model.experts->count > model.experts->active)
      return model;
}

TEST(ExpertsStepImpl, AStepThatIsNotFiniteMovesNoBias) {
  const spec::ModelSpec model = biased_model();
  const auto communicator = make_self_communicator();
  tests::StepRunner runner(model, Dtype::f64, at::kCPU, *communicator, settings(), 3);
  const auto batch = tests::tiny_batch(model, 3);
  const auto valid = static_cast<double>(batch.valid_tokens());
  runner.step({batch}, valid, 3e-3);
  const at::Tensor before = biases_of(runner);
  EXPECT_GT(before.abs().sum().item<double>(), 0);
  runner.buffers().weights.fill_(std::nan(""));
  EXPECT_THROW(runner.step({batch}, valid, 3e-3), run::NonFiniteError);
  EXPECT_TRUE(at::equal(biases_of(runner), before));
}

TEST(ExpertsStepImpl, PassesWithoutABackwardCountNoLoad) {
  const spec::ModelSpec model = biased_model();
  const auto communicator = make_self_communicator();
  const auto batch = tests::tiny_batch(model, 3);
  const auto valid = static_cast<double>(batch.valid_tokens());
  std::vector<std::vector<double>> all;
  for (const bool between : {false, true}) {
    tests::StepRunner runner(model, Dtype::f64, at::kCPU, *communicator, settings(), 3);
    for (int step = 0; step < 2; ++step) {
      if (between) runner.model().logits(tests::token_batch(batch, at::kCPU));
      all.push_back(numbers(runner.step({batch}, valid, 3e-3)));
    }
    const at::Tensor biases = biases_of(runner);
    all.emplace_back(biases.const_data_ptr<double>(), biases.const_data_ptr<double>() + biases.numel());
  }
  EXPECT_EQ(std::vector(all.begin(), all.begin() + 3), std::vector(all.begin() + 3, all.end()));
}

TEST(ExpertsStepImpl, BiasesAreNoLearnedParametersAndKeepAllBits) {
  const spec::ModelSpec model = biased_model();
  for (const auto& [dtype, states] : {std::pair{Dtype::f64, Dtype::f32}, {Dtype::bf16, Dtype::bf16}}) {
    const auto communicator = make_self_communicator();
    run::StepSettings rates = settings();
    rates.bias_rate = 0.001;
    tests::StepRunner runner(model, dtype, at::kCPU, *communicator, spec::Layout{}, rates, 3, states);
    EXPECT_EQ(runner.buffers().router_biases.scalar_type(), dtype == Dtype::f64 ? at::kDouble : at::kFloat);
    const auto batch = tests::tiny_batch(model, 3);
    for (int step = 0; step < 40; ++step) runner.step({batch}, static_cast<double>(batch.valid_tokens()), 0);
    const at::Tensor steps = runner.buffers().router_biases.to(at::kDouble) / 0.001;
    // Whole numbers of moves, but for the roundings of 40 sums: 40 * 40 * 2^-24.
    EXPECT_LT((steps - steps.round()).abs().max().item<double>(), 1e-4);
    EXPECT_GT(steps.abs().max().item<double>(), 1);
    for (const spec::Parameter& parameter : runner.buffers().inventory.parameters)
      if (!parameter.learned()) {
        for (const at::Tensor& buffer : {runner.buffers().weights, runner.buffers().gradients,
                                         runner.buffers().moment1, runner.buffers().moment2})
          EXPECT_TRUE(buffer.narrow(0, parameter.offset, parameter.size).eq(0).all().item<bool>());
      }
  }
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
