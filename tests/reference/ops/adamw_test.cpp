// labels: unit property golden
#include "reference/ops/adamw.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <sstream>

#include "spec/ops/adamw/adamw_rounding.hpp"
#include "spec/random/stochastic_rounding.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::adamw_test {
namespace {

using spec::adamw::Settings;
using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);
const Settings settings{
    .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .step = 3};

struct State {
  Tensor<double> parameter, gradient, moment1, moment2;
};

/// A tensor in mid-training: moments of both sizes, the second one positive.
State draw_state(Index n) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  State state{tests::normal({n}, seed), tests::normal({n}, seed + 1), tests::normal({n}, seed + 2),
              tests::normal({n}, seed + 3)};
  state.moment2.flat() = state.moment2.flat().square();
  return state;
}

void update(State& state, const Settings& with) {
  adamw::update(state.parameter, state.gradient, state.moment1, state.moment2, with);
}

TEST(AdamwReference, GivesTheSpecExample) {
  State state{Tensor<double>({1}, {1}), Tensor<double>({1}, {2}), Tensor<double>({1}), Tensor<double>({1})};
  update(state,
         {.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1, .weight_decay = 0.5, .step = 1});
  // The double 0.9 is off by u relative, so 1 - 0.9, an exact subtraction, by 9 u, and 1 - 0.99 by 99 u; the
  // products with g = 2 and g^2 = 4 are exact. One u more for the expected numbers as doubles.
  ASSAY_EXPECT_CLOSE(values(state.moment1), (tests::Values{{1}, {0.2}}), Allowed::relative(gamma(10, u)));
  ASSAY_EXPECT_CLOSE(values(state.moment2), (tests::Values{{1}, {0.04}}), Allowed::relative(gamma(100, u)));
  // Decay, absolute: 0.05 u for 0.1 * 0.5, 0.95 u for the subtraction: 1 u. Numerator, relative: step size 11
  // u (0.1, 1 - 0.9, division), m 9 u, product 1 u: 21 u. Denominator 2 + 1: root of v and root of the
  // correction 50.5 u each and their division 1 u, of 2; the sum 1 u: 69 u. Step of 0.2 / 3: (21 + 69 + 1) u
  // of it, 6.1 u. Last subtraction 0.9 u. The expected number has 2 u. Together 10 u, absolute.
  ASSAY_EXPECT_CLOSE(values(state.parameter), (tests::Values{{1}, {0.95 - 0.2 / 3}}),
                     Allowed::elementwise({gamma(10, u)}));
}

TEST(AdamwReference, TrajectoriesMatchTorchOptim) {
  for (const char* name : {"trajectory", "tiny_gradients"}) {
    const auto golden = tests::load_golden(std::string("ops/adamw/") + name + ".json");
    std::istringstream parameters(golden.text("parameters"));
    for (std::string key; parameters >> key;) {
      SCOPED_TRACE(std::string(name) + " " + key);
      const auto start = tests::tensor(golden.tensor(key + ".initial"));
      const auto gradients = tests::tensor(golden.tensor(key + ".gradients"));
      const auto rates = golden.tensor("learning_rates").data;
      State state{start, Tensor<double>(start.shape()), Tensor<double>(start.shape()),
                  Tensor<double>(start.shape())};
      auto after = gradients;
      for (std::size_t step = 0; step < rates.size(); ++step) {
        const Index begin = static_cast<Index>(step) * start.size();
        state.gradient.flat() = gradients.flat().segment(begin, start.size());
        update(state, {.learning_rate = rates[step],
                       .beta1 = golden.scalar("beta1"),
                       .beta2 = golden.scalar("beta2"),
                       .eps = golden.scalar("eps"),
                       .weight_decay = golden.scalar(key + ".weight_decay"),
                       .step = static_cast<Index>(step) + 1});
        after.flat().segment(begin, start.size()) = state.parameter.flat();
      }
      ASSAY_EXPECT_CLOSE(values(after), golden.tensor(key + ".after"), Allowed::relative(1e-10));
      ASSAY_EXPECT_CLOSE(values(state.moment1), golden.tensor(key + ".exp_avg"), Allowed::relative(1e-10));
      ASSAY_EXPECT_CLOSE(values(state.moment2), golden.tensor(key + ".exp_avg_sq"), Allowed::relative(1e-10));
    }
  }
}

TEST(AdamwReference, C1RejectsAnotherNumberOfEntriesAndChangesNothing) {
  State state{tests::normal({3}, 1), tests::normal({3}, 2), tests::normal({3}, 3), tests::normal({4}, 4)};
  EXPECT_THROW(update(state, settings), SpecError);
  EXPECT_TRUE((state.parameter.flat() == tests::normal({3}, 1).flat()).all());
  state.moment2 = state.moment1;
  state.gradient = tests::normal({4}, 2);
  EXPECT_THROW(update(state, settings), SpecError);
}

TEST(AdamwReference, C2ToC6RejectSettingsOutsideTheirRange) {
  const State state{tests::normal({3}, 1), tests::normal({3}, 2), Tensor<double>({3}), Tensor<double>({3})};
  const auto changed = [](auto change) {
    Settings other = settings;
    change(other);
    return other;
  };
  for (const Settings& bad :
       {changed([](Settings& s) { s.step = 0; }), changed([](Settings& s) { s.beta1 = 1; }),
        changed([](Settings& s) { s.eps = 0; }), changed([](Settings& s) { s.learning_rate = -1; }),
        changed([](Settings& s) { s.weight_decay = -1; })}) {
    State other = state;
    EXPECT_THROW(update(other, bad), SpecError);
    EXPECT_TRUE((other.parameter.flat() == state.parameter.flat()).all());
  }
}

RC_GTEST_PROP(AdamwReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index n = *rc::gen::inRange(0, 20);
  const State state = draw_state(n);
  auto parameter = tests::counted(state.parameter), gradient = tests::counted(state.gradient);
  auto moment1 = tests::counted(state.moment1), moment2 = tests::counted(state.moment2);
  RC_ASSERT(tests::operations_of([&] { adamw::update(parameter, gradient, moment1, moment2, settings); }) ==
            spec::adamw::update_flops(n).vector);
}

RC_GTEST_PROP(AdamwReference, ZeroGradientFromRestOnlyDecays, ()) {
  State state = draw_state(*rc::gen::inRange(1, 20));
  state.gradient.flat().setZero();
  state.moment1.flat().setZero();
  auto decayed = state.parameter;
  decayed.flat() *= 1 - settings.learning_rate * settings.weight_decay;
  update(state, settings);
  ASSAY_RC_CLOSE(values(state.parameter), values(decayed), Allowed::exact());
}

RC_GTEST_PROP(AdamwReference, TheFirstStepMovesEveryEntryByTheLearningRate, ()) {
  State state = draw_state(*rc::gen::inRange(1, 20));
  state.moment1.flat().setZero();
  state.moment2.flat().setZero();
  auto expected = state.parameter;
  expected.flat() -= 0.25 * state.gradient.flat().sign();
  update(state,
         {.learning_rate = 0.25, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-300, .weight_decay = 0, .step = 1});
  // 1 - beta1 and 1 - beta2 are the same doubles in the moments and in their corrections, so their own errors
  // cancel. Numerator: division, m, product: 3 u. Denominator: v 2 u, halved by the root, and its rounding;
  // root of the correction, division, sum with eps: 5 u. The quotient: 9 u of the step, and one more for
  // second order. Then the subtraction, here and in the expected number, u each.
  auto bound = state.parameter;
  bound.flat() = gamma(10, u) * 0.25 + gamma(2, u) * expected.flat().abs();
  ASSAY_RC_CLOSE(values(state.parameter), values(expected), Allowed::elementwise(values(bound).data));
}

RC_GTEST_PROP(AdamwReference, GradientAndEpsMayBeScaledTogether, ()) {
  // Powers of two round nothing, and the step is a ratio: why loss scaling is harmless where eps scales with
  // it.
  State state = draw_state(*rc::gen::inRange(1, 20)), scaled = state;
  scaled.gradient.flat() *= 4;
  scaled.moment1.flat() *= 4;
  scaled.moment2.flat() *= 16;
  Settings scaled_settings = settings;
  scaled_settings.eps *= 4;
  update(state, settings);
  update(scaled, scaled_settings);
  ASSAY_RC_CLOSE(values(scaled.parameter), values(state.parameter), Allowed::exact());
}

/// Every entry of a tensor, rounded to bf16 to the nearest.
void to_bf16(Tensor<double>& x) {
  for (Index i = 0; i < x.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x[i]));
    x[i] = spec::random::bf16_value(static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
  }
}

RC_GTEST_PROP(AdamwReference, Bf16StatesAreNeighboursOfTheExactOnes, ()) {
  State state = draw_state(*rc::gen::inRange(1, 20));
  for (auto* tensor : {&state.parameter, &state.moment1, &state.moment2}) to_bf16(*tensor);
  State exact = state;
  update(exact, settings);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto first = *rc::gen::inRange<std::uint64_t>(0, 100);
  adamw::update_bf16(state.parameter, state.gradient, state.moment1, state.moment2, settings, seed, first);
  const auto stream = spec::adamw::rounding_stream(seed, settings.step);
  for (Index i = 0; i < state.parameter.size(); ++i) {
    const std::uint64_t entry = first + static_cast<std::uint64_t>(i);
    const auto bits = spec::adamw::rounding_bits(stream.block(entry / 2), entry);
    const auto rounded = spec::random::stochastic_bf16_of_real;
    RC_ASSERT(state.parameter[i] == rounded(exact.parameter[i], bits.parameter));
    RC_ASSERT(state.moment1[i] == rounded(exact.moment1[i], bits.moment1));
    RC_ASSERT(state.moment2[i] == rounded(exact.moment2[i], bits.moment2));
  }
}

/// A learning rate whose steps are a twentieth of a unit of bf16: to the nearest no entry would ever move.
TEST(AdamwReference, SmallStepsOnBf16StatesAddUpToTheirSum) {
  constexpr Index n = 4096;
  constexpr int steps = 20;
  Settings small{
      .learning_rate = 0x1p-8 / 20, .beta1 = 0, .beta2 = 0, .eps = 1e-300, .weight_decay = 0, .step = 1};
  State state{Tensor<double>({n}), Tensor<double>({n}), Tensor<double>({n}), Tensor<double>({n})};
  state.parameter.flat().setConstant(0.75);
  state.gradient.flat().setOnes();
  for (small.step = 1; small.step <= steps; ++small.step)
    adamw::update_bf16(state.parameter, state.gradient, state.moment1, state.moment2, small, 5, 0);
  // Each step moves by 2^-8 / 20 in the mean and in units of 2^-8: a variance below (2^-8)^2 / 20 a step.
  const double expected = 0.75 - steps * small.learning_rate;
  const double deviation = 0x1p-8 * std::sqrt(steps / 20.0 / n);
  EXPECT_NEAR(state.parameter.flat().mean(), expected, 5 * deviation);
}

TEST(AdamwReference, C7RejectsAStepThatHasNoRoundingBits) {
  State state{Tensor<double>({1}), Tensor<double>({1}), Tensor<double>({1}), Tensor<double>({1})};
  Settings late = settings;
  late.step = 0x100000000;
  EXPECT_NO_THROW(update(state, late));
  EXPECT_THROW(adamw::update_bf16(state.parameter, state.gradient, state.moment1, state.moment2, late, 1, 0),
               SpecError);
}

RC_GTEST_PROP(AdamwReference, PartsOfATensorAreUpdatedAsTheWhole, ()) {
  const Index n = *rc::gen::inRange(2, 20), first = *rc::gen::inRange<Index>(1, n);
  State whole = draw_state(n);
  const State before = whole;
  update(whole, settings);
  for (const auto& [begin, count] : {std::pair{Index{0}, first}, std::pair{first, n - first}}) {
    const auto part = [&, from = begin, size = count](const Tensor<double>& x) {
      Tensor<double> range({size});
      range.flat() = x.flat().segment(from, size);
      return range;
    };
    State shard{part(before.parameter), part(before.gradient), part(before.moment1), part(before.moment2)};
    update(shard, settings);
    ASSAY_RC_CLOSE(values(shard.parameter), values(part(whole.parameter)), Allowed::exact());
    ASSAY_RC_CLOSE(values(shard.moment1), values(part(whole.moment1)), Allowed::exact());
    ASSAY_RC_CLOSE(values(shard.moment2), values(part(whole.moment2)), Allowed::exact());
  }
}

}  // namespace
}  // namespace assay::reference::adamw_test
