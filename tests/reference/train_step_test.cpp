// labels: unit property
#include "reference/train_step.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/model/model.hpp"
#include "spec/model/inventory.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::train_step_test {
namespace {

using tests::Allowed;
using tests::Documents;
using tests::Ignored;
using tests::joined;
using tests::Values;

/// The same sums in another order, through under 900 dependent roundings (as in model_test.cpp): 1e-13.
const Allowed rounding = Allowed::relative(gamma(900, unit_roundoff(Dtype::f64)));

Values losses(const StepGradients& step) { return {{2}, {step.cross_entropy, step.z_loss}}; }

TrainState drawn_state(const spec::ModelSpec& model, std::uint64_t seed) {
  return {
      .parameters = tests::drawn_parameters(model, seed), .moment1 = zeros(model), .moment2 = zeros(model)};
}

RC_GTEST_PROP(TrainStepReference, AnySplitOfTheBatchGivesTheWholeBatch, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto documents = *rc::gen::element(Documents::whole, Documents::packed);
  const auto ignored = *rc::gen::element(Ignored::none, Ignored::some, Ignored::sequences, Ignored::most);
  const auto batch = tests::tiny_batch(model, *rc::gen::inRange<Index>(1, 7), 5, documents, ignored, seed);
  auto pieces = tests::micro_batches(batch, *rc::gen::inRange<Index>(1, 4));
  if (*rc::gen::arbitrary<bool>()) std::reverse(pieces.begin(), pieces.end());

  const auto whole = step_gradients(parameters, model, {batch}, 1e-3);
  const auto split = step_gradients(parameters, model, pieces, 1e-3);
  RC_ASSERT(split.valid_tokens == batch.valid_tokens());
  ASSAY_RC_CLOSE(losses(split), losses(whole), rounding);
  ASSAY_RC_CLOSE(joined(split.gradients), joined(whole.gradients), rounding);
}

TEST(TrainStepReference, ALossOfUnevenMicroBatchesIsNoMeanOfMeans) {
  const auto model = tests::corner_models().front();
  const auto parameters = tests::drawn_parameters(model, 1);
  const auto many = tests::tiny_batch(model, 1, 8, Documents::whole, Ignored::none, 2);
  const auto one = tests::tiny_batch(model, 1, 8, Documents::whole, Ignored::most, 3);
  const double loss_of_many = step_gradients(parameters, model, {many}, 0).cross_entropy;
  const double loss_of_one = step_gradients(parameters, model, {one}, 0).cross_entropy;
  ASSAY_EXPECT_CLOSE((Values{{1}, {step_gradients(parameters, model, {many, one}, 0).cross_entropy}}),
                     (Values{{1}, {(8 * loss_of_many + loss_of_one) / 9}}), rounding);
}

TEST(TrainStepReference, RefusesABatchInWhichNoTargetCountsAndKeepsTheState) {
  const auto model = tests::corner_models().front();
  auto batch = tests::tiny_batch(model, 1, 4, Documents::whole, Ignored::none, 2);
  std::fill(batch.targets.begin(), batch.targets.end(), Batch::ignored);
  auto state = drawn_state(model, 1);
  try {
    train_step(state, model, {batch}, {}, 1e-3);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), "cross_entropy_c3");
  }
  EXPECT_EQ(state.step, 0);
  EXPECT_EQ(joined(state.parameters).data, joined(drawn_state(model, 1).parameters).data);
}

RC_GTEST_PROP(TrainStepReference, TheFirstStepLeavesClippedGradientsInTheMoments, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto batch = tests::tiny_batch(model, seed);
  auto state = drawn_state(model, seed);
  const auto step = step_gradients(state.parameters, model, {batch}, 0);
  const double clip = *rc::gen::element(0.0, 0.01, 1e6);
  const Hyperparameters hyperparameters{.beta1 = 0.5, .beta2 = 0.75, .clip = clip};
  const auto result = train_step(state, model, {batch}, hyperparameters, 1e-3);

  RC_ASSERT(state.step == 1);
  RC_ASSERT((result.cross_entropy == step.cross_entropy && result.z_loss == 0));
  RC_ASSERT(result.valid_tokens == step.valid_tokens);
  const Values gradient = joined(step.gradients);
  double squares = 0;
  for (const double entry : gradient.data) squares += entry * entry;
  const double norm = std::sqrt(squares);
  const double coefficient = clip == 0 ? 1 : std::min(1.0, clip / (norm + 1e-6));
  ASSAY_RC_CLOSE((Values{{2}, {result.gradient_norm / norm, result.clip_coefficient / coefficient}}),
                 (Values{{2}, {1, 1}}), rounding);
  Values mean = gradient, mean_of_squares = gradient;
  for (double& entry : mean.data) entry *= 0.5 * coefficient;
  for (double& entry : mean_of_squares.data) entry *= 0.25 * coefficient * coefficient * entry;
  ASSAY_RC_CLOSE(joined(state.moment1), mean, rounding);
  ASSAY_RC_CLOSE(joined(state.moment2), mean_of_squares, rounding);
}

RC_GTEST_PROP(TrainStepReference, WeightDecayReachesMatricesOnly, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto batch = tests::tiny_batch(model, seed);
  const auto before = drawn_state(model, seed);
  auto decayed = before, plain = before;
  const double learning_rate = 0.25, weight_decay = 0.5;
  train_step(decayed, model, {batch}, {.weight_decay = weight_decay}, learning_rate);
  train_step(plain, model, {batch}, {.weight_decay = 0}, learning_rate);
  for (const auto& parameter : spec::inventory(model).parameters) {
    Tensor<double> expected = plain.parameters.at(parameter.name);
    if (parameter.matrix())
      expected.flat() -= learning_rate * weight_decay * before.parameters.at(parameter.name).flat();
    ASSAY_RC_CLOSE(tests::values(decayed.parameters.at(parameter.name)), tests::values(expected), rounding);
  }
}

TEST(TrainStepReference, StepsOnOneBatchFitIt) {
  const auto model = tests::corner_models().front();
  const auto batch = tests::tiny_batch(model, 2, 6, Documents::packed, Ignored::some, 4);
  auto state = initial_state(model, 5);
  std::vector<double> loss;
  loss.reserve(60);
  for (int step = 0; step < 60; ++step)
    loss.push_back(train_step(state, model, {batch}, {}, 2e-2).cross_entropy);
  EXPECT_NEAR(loss.front(), std::log(static_cast<double>(model.vocab)), 0.7);
  EXPECT_LT(loss.back(), 0.5 * loss.front());
}

using balancing::Form;

/// A step's parts of the objective, without and with their coefficients.
Values losses(const StepGradients& step, const balancing::Settings& settings) {
  const double balance = settings.coefficient * step.balance.balance,
               router_z = settings.router_z_coefficient * step.balance.router_z;
  return {{4}, {step.cross_entropy + step.z_loss + balance + router_z, step.z_loss, balance, router_z}};
}

balancing::Settings draw_settings(std::initializer_list<Form> forms) {
  const auto index = *rc::gen::inRange<std::size_t>(0, forms.size());
  return {.form = forms.begin()[index], .coefficient = 0.3, .router_z_coefficient = 0.02};
}

RC_GTEST_PROP(TrainStepReference, AnySplitOfABatchOfExpertsGivesTheWholeBatch, (std::uint64_t seed)) {
  const auto model = tests::routed_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto documents = *rc::gen::element(Documents::whole, Documents::packed);
  const auto ignored = *rc::gen::element(Ignored::none, Ignored::some, Ignored::sequences, Ignored::most);
  const auto batch = tests::tiny_batch(model, *rc::gen::inRange<Index>(1, 7), 5, documents, ignored, seed);
  const auto settings = draw_settings({Form::global, Form::sequence});
  auto pieces = tests::micro_batches(batch, *rc::gen::inRange<Index>(1, 4));
  if (*rc::gen::arbitrary<bool>()) std::reverse(pieces.begin(), pieces.end());

  const auto whole = step_gradients(parameters, model, {batch}, 1e-3, {}, settings);
  const auto split = step_gradients(parameters, model, pieces, 1e-3, {}, settings);
  RC_ASSERT(split.balance.counts == whole.balance.counts);
  ASSAY_RC_CLOSE(losses(split, settings), losses(whole, settings), rounding);
  ASSAY_RC_CLOSE(joined(split.gradients), joined(whole.gradients), rounding);
}

/// Each form by its definition, from the choices and probabilities of every token.
TEST(TrainStepReference, TheBalanceLossIsThatOfItsForm) {
  for (std::uint64_t seed = 1; seed < 12; ++seed) {
    const auto model = tests::routed_model(seed);
    SCOPED_TRACE(tests::describe(model));
    const auto parameters = tests::drawn_parameters(model, seed);
    const Index T = 5;
    const std::vector<Batch> micro_batches{
        tests::tiny_batch(model, 2, T, Documents::whole, Ignored::some, seed),
        tests::tiny_batch(model, 1, T, Documents::whole, Ignored::none, seed + 100)};
    const spec::Experts& e = *model.experts;
    // Shares and mean probabilities of one layer over sequences [begin, end) of the step's three.
    const auto of = [&](Index layer, Index begin, Index end) {
      std::vector<double> f(static_cast<std::size_t>(e.count)), p(f);
      Index sequence = 0;
      for (const Batch& micro : micro_batches) {
        const auto forward = model::forward(parameters, model, micro, {.normalizer = 1, .z_loss = 0});
        const auto& router = forward.blocks[static_cast<std::size_t>(layer)].experts.router;
        const auto probabilities = router::probabilities(router.scores, e);
        for (Index b = 0; b < micro.B; ++b, ++sequence) {
          if (sequence < begin || sequence >= end) continue;
          const double tokens = static_cast<double>((end - begin) * T);
          for (Index n = b * T; n < (b + 1) * T; ++n) {
            for (Index a = 0; a < e.active; ++a)
              f[static_cast<std::size_t>(router.chosen[static_cast<std::size_t>(n * e.active + a)])] +=
                  1 / (tokens * static_cast<double>(e.active));
            for (Index x = 0; x < e.count; ++x)
              p[static_cast<std::size_t>(x)] += probabilities(n, x) / tokens;
          }
        }
      }
      return std::pair(f, p);
    };
    const auto switch_loss = [&](const std::vector<double>& f, const std::vector<double>& p) {
      double sum = 0;
      for (std::size_t x = 0; x < f.size(); ++x) sum += f[x] * p[x];
      return static_cast<double>(e.count) * sum;
    };
    double global = 0, sequence = 0, micro = 0, hugging_face = 0;
    for (Index l = 0; l < model.layers; ++l) {
      if (!model.sparse(l)) continue;
      const auto loss = [&](Index begin, Index end) {
        const auto [f, p] = of(l, begin, end);
        return switch_loss(f, p);
      };
      global += loss(0, 3);
      sequence += (loss(0, 1) + loss(1, 2) + loss(2, 3)) / 3;
      micro += (2 * loss(0, 2) + loss(2, 3)) / 3;
    }
    // Rows of all sparse layers as one list; f counts, so that it sums to A.
    for (const auto& [begin, end] : {std::pair<Index, Index>(0, 2), std::pair<Index, Index>(2, 3)}) {
      std::vector<double> f(static_cast<std::size_t>(e.count)), p(f);
      const auto sparse = static_cast<double>(model.sparse_layers());
      for (Index l = 0; l < model.layers; ++l) {
        if (!model.sparse(l)) continue;
        const auto [of_f, of_p] = of(l, begin, end);
        for (std::size_t x = 0; x < f.size(); ++x)
          f[x] += static_cast<double>(e.active) * of_f[x] / sparse, p[x] += of_p[x] / sparse;
      }
      hugging_face += static_cast<double>(end - begin) / 3 * switch_loss(f, p);
    }
    const auto value = [&](Form form) {
      return step_gradients(parameters, model, micro_batches, 0, {}, {.form = form}).balance.balance;
    };
    ASSAY_EXPECT_CLOSE((Values{{4},
                               {value(Form::global), value(Form::sequence), value(Form::micro_batch),
                                value(Form::hugging_face)}}),
                       (Values{{4}, {global, sequence, micro, hugging_face}}), rounding);
  }
}

/// Whether a central difference of the whole objective at every entry of the routers stayed with the choice
/// at the point itself; a choice that a step changes has no derivative there.
bool routers_match_central_difference(const balancing::Settings& settings, std::uint64_t seed) {
  const auto model = tests::routed_model(seed);
  auto parameters = tests::drawn_parameters(model, seed);
  const std::vector<Batch> micro_batches{
      tests::tiny_batch(model, 2, 3, Documents::packed, Ignored::some, seed),
      tests::tiny_batch(model, 1, 3, Documents::whole, Ignored::none, seed + 1)};
  const auto step = step_gradients(parameters, model, micro_batches, 1e-2, {}, settings);
  bool stays = true;
  for (const auto& parameter : spec::inventory(model).parameters) {
    if (parameter.role != spec::Role::router) continue;
    auto& moved = parameters.at(parameter.name);
    const Tensor<double> original = moved;
    const auto expected = tests::central_difference(
        [&](const Tensor<double>& value) {
          moved = value;
          const auto now = step_gradients(parameters, model, micro_batches, 1e-2, {}, settings);
          stays = stays && now.balance.counts == step.balance.counts;
          return losses(now, settings).data.front();
        },
        original, 1e-4);
    moved = original;
    if (stays) {
      EXPECT_TRUE(tests::close(tests::values(step.gradients.at(parameter.name)), expected,
                               Allowed::relative(1e-7), /*zeros_expected=*/true))
          << parameter.name << " of " << tests::describe(model);
    }
  }
  return stays;
}

TEST(TrainStepReference, GradientsHoldTheAuxiliaryLossesOfEveryForm) {
  for (const Form form :
       {Form::global, Form::running, Form::sequence, Form::micro_batch, Form::hugging_face}) {
    SCOPED_TRACE(to_string(form));
    const balancing::Settings settings{.form = form, .coefficient = 0.3, .router_z_coefficient = 0.02};
    int compared = 0;
    for (std::uint64_t seed = 1; compared < 2; ++seed)
      compared += routers_match_central_difference(settings, seed) ? 1 : 0;
  }
}

TEST(TrainStepReference, RouterBiasesMoveByTheStepsLoadsAlone) {
  int biased = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto model = tests::routed_model(seed);
    if (!model.experts->router_bias) continue;
    ++biased;
    const auto batch = tests::tiny_batch(model, 4, 5, Documents::whole, Ignored::some, seed);
    const auto before = drawn_state(model, seed);
    const auto counts = step_gradients(before.parameters, model, {batch}, 0).balance.counts;
    for (const double rate : {0.0, 0.125}) {
      auto state = before;
      // Two micro-batches, one update; weight decay, clipping and the learning rate do not reach it.
      train_step(state, model, tests::micro_batches(batch, 2),
                 {.weight_decay = 0.5, .clip = 1e-3, .balancing = {.bias_rate = rate}}, 0.25);
      for (const auto& parameter : spec::inventory(model).parameters) {
        if (parameter.role != spec::Role::router_bias) continue;
        const auto& now = state.parameters.at(parameter.name);
        const auto& was = before.parameters.at(parameter.name);
        const auto& load = counts.at(static_cast<std::size_t>(parameter.block - 1));
        const Index X = model.experts->count, choices = 20 * model.experts->active;
        for (Index e = 0; e < X; ++e) {
          const Index excess = X * load[static_cast<std::size_t>(e)] - choices;
          EXPECT_EQ(now[e], was[e] + (excess < 0 ? rate : excess > 0 ? -rate : 0));
        }
        EXPECT_TRUE((state.moment1.at(parameter.name).flat() == 0.0).all());
      }
    }
  }
  EXPECT_GT(biased, 3);
}

/// f of the batch so far: the choices of each pass and of those before it.
RC_GTEST_PROP(TrainStepReference, RunningSharesAreThoseOfTheBatchSoFar, (std::uint64_t seed)) {
  const auto model = tests::routed_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto batch = tests::tiny_batch(model, 4, 3, Documents::whole, Ignored::some, seed);
  const auto value = [&](const std::vector<Batch>& passes, Form form) {
    return step_gradients(parameters, model, passes, 0, {}, {.form = form, .coefficient = 0.3})
        .balance.balance;
  };
  const auto near = [](double a, double b) { RC_ASSERT(std::abs(a - b) <= 1e-12 * (1 + std::abs(b))); };
  near(value({batch}, Form::running), value({batch}, Form::global));
  // Passes of one sequence of 3 tokens, by the definition.
  const auto passes = tests::micro_batches(batch, 1);
  double expected = 0;
  for (std::size_t m = 0; m < passes.size(); ++m) {
    const std::vector<Batch> so_far(passes.begin(), passes.begin() + static_cast<std::ptrdiff_t>(m) + 1);
    std::vector<model::Forward<double>> forwards;
    for (const Batch& pass : so_far) forwards.push_back(model::forward(parameters, model, pass, {}));
    for (Index layer = 0; layer < model.layers; ++layer) {
      if (!model.sparse(layer)) continue;
      const spec::Experts& e = *model.experts;
      std::vector<double> f(static_cast<std::size_t>(e.count));
      for (const auto& forward : forwards)
        for (const Index chosen : forward.blocks[static_cast<std::size_t>(layer)].experts.router.chosen)
          f[static_cast<std::size_t>(chosen)] +=
              1 / static_cast<double>(3 * e.active * (static_cast<Index>(m) + 1));
      const auto p = router::probabilities(
          forwards.back().blocks[static_cast<std::size_t>(layer)].experts.router.scores, e);
      for (Index n = 0; n < p.extent(0); ++n)
        for (Index i = 0; i < e.count; ++i)
          expected += static_cast<double>(e.count) / 12 * f[static_cast<std::size_t>(i)] * p(n, i);
    }
  }
  near(value(passes, Form::running), expected);
}

/// Rows are limited in each sequence, so that what is dropped does not depend on micro-batches.
RC_GTEST_PROP(TrainStepReference, ACapacityDropsTheSameInAnySplit, (std::uint64_t seed)) {
  const auto model = tests::routed_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto batch = tests::tiny_batch(model, 4, 5, Documents::packed, Ignored::some, seed);
  const balancing::Settings settings{
      .form = Form::sequence, .coefficient = 0.3, .capacity_factor = *rc::gen::element(0.5, 1.0, 1.5)};
  const auto whole = step_gradients(parameters, model, {batch}, 0, {}, settings);
  for (const Index micro : {1, 2, 3}) {
    const auto split = step_gradients(parameters, model, tests::micro_batches(batch, micro), 0, {}, settings);
    RC_ASSERT(split.balance.dropped == whole.balance.dropped);
    RC_ASSERT(std::abs(split.cross_entropy - whole.cross_entropy) <= 1e-12 * whole.cross_entropy);
    for (const auto& [name, gradient] : whole.gradients)
      RC_ASSERT((split.gradients.at(name).flat() - gradient.flat()).abs().maxCoeff() <=
                1e-12 * (1 + gradient.flat().abs().maxCoeff()));
  }
}

TEST(TrainStepReference, ACapacityDropsAndReportsIt) {
  const auto model = tests::sparse_model(2);
  const auto batch = tests::tiny_batch(model, 4, 5, Documents::whole, Ignored::none, 2);
  auto state = drawn_state(model, 2);
  EXPECT_EQ(train_step(state, model, {batch}, {}, 1e-3).dropped, 0);
  const auto result = train_step(state, model, {batch}, {.balancing = {.capacity_factor = 0.25}}, 1e-3);
  EXPECT_GE(result.dropped, model.experts->count > 1 ? 0.5 : 0.7);
  EXPECT_LT(result.dropped, 1);
}

}  // namespace
}  // namespace assay::reference::train_step_test
