// labels: property
#include "spec/data/mixture.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <set>

#include "spec/data/sample_order.hpp"
#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::data::mixture_test {
namespace {

std::vector<std::int64_t> draw_weights() {
  std::vector<std::int64_t> weights(*rc::gen::inRange<std::size_t>(1, 9));
  for (std::int64_t& weight : weights) weight = *rc::gen::inRange<std::int64_t>(1, 60);
  return weights;
}

std::vector<std::size_t> order_of(const Mixture& mixture) {
  std::vector<std::size_t> order;
  for (std::int64_t g = 0; g < mixture.period(); ++g) order.push_back(mixture.at(g).source);
  return order;
}

TEST(Mixture, HasTheOrderOfThePagesExample) {
  const Mixture mixture({500'000, 300'000, 200'000});
  EXPECT_EQ(mixture.weights(), (std::vector<std::int64_t>{5, 3, 2}));
  EXPECT_EQ(order_of(mixture), (std::vector<std::size_t>{0, 1, 0, 2, 0, 1, 0, 2, 1, 0}));
}

/// Of equal deadlines the first source's comes first, whether the weights are equal or not (by the page's
/// rule, in fractions).
TEST(Mixture, OfEqualDeadlinesTheFirstSourceGoesFirst) {
  EXPECT_EQ(order_of(Mixture({1, 1})), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(order_of(Mixture({1, 1, 1})), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(order_of(Mixture({1, 3})), (std::vector<std::size_t>{1, 0, 1, 1}));
  EXPECT_EQ(order_of(Mixture({1, 1, 5})), (std::vector<std::size_t>{2, 2, 0, 2, 1, 2, 2}));
}

/// Among sources of one weight the first never has fewer places.
RC_GTEST_PROP(Mixture, EqualWeightsTakeTurnsInTheirOrder, ()) {
  std::vector<std::int64_t> weights = draw_weights();
  weights.push_back(weights.front());
  const Mixture mixture(weights);
  const std::size_t last = mixture.sources() - 1;
  for (std::int64_t g = 0; g <= mixture.period(); ++g)
    RC_ASSERT(mixture.count(0, g) >= mixture.count(last, g) &&
              mixture.count(last, g) >= mixture.count(0, g) - 1);
}

// Tijdeman's bound, in whole numbers: |x_k(g) P - W_k g| d <= P (d - 1).
RC_GTEST_PROP(Mixture, EverySharesErrorStaysWithinTheBound, ()) {
  const Mixture mixture(draw_weights());
  const std::int64_t P = mixture.period();
  const auto n = static_cast<std::int64_t>(mixture.sources()), d = std::max<std::int64_t>(2 * n - 2, 2);
  std::vector<std::int64_t> filled(mixture.sources(), 0);
  for (std::int64_t g = 0; g < 2 * P; ++g) {
    const Mixture::Place place = mixture.at(g);
    RC_ASSERT(place.index == filled.at(place.source)++);
    for (std::size_t k = 0; k < filled.size(); ++k) {
      RC_ASSERT(mixture.count(k, g + 1) == filled[k]);
      RC_ASSERT(std::abs(filled[k] * P - mixture.weights()[k] * (g + 1)) * d <= P * (d - 1));
    }
  }
  RC_ASSERT(filled[0] == 2 * mixture.weights()[0]);
}

// Over any stretch: within one sequence for two sources.
RC_GTEST_PROP(Mixture, TwoSourcesStayWithinOneOverEveryStretch, ()) {
  const Mixture mixture({*rc::gen::inRange<std::int64_t>(1, 200), *rc::gen::inRange<std::int64_t>(1, 200)});
  const std::int64_t P = mixture.period(), from = *rc::gen::inRange<std::int64_t>(0, 5 * P),
                     length = *rc::gen::inRange<std::int64_t>(0, 3 * P);
  const std::int64_t filled = mixture.count(0, from + length) - mixture.count(0, from);
  RC_ASSERT(std::abs(filled * P - mixture.weights()[0] * length) <= P);
}

RC_GTEST_PROP(Mixture, IsTheSameFarFromTheStart, ()) {
  const Mixture mixture(draw_weights());
  const std::int64_t near = *rc::gen::inRange<std::int64_t>(0, mixture.period()),
                     periods = std::int64_t{1} << 30;
  const Mixture::Place here = mixture.at(near), far = mixture.at(near + periods * mixture.period());
  RC_ASSERT(far.source == here.source);
  RC_ASSERT(far.index == here.index + periods * mixture.weights()[here.source]);
}

TEST(Mixture, RefusesWhatIsNone) {
  EXPECT_EQ(tests::label_of([] { Mixture({}); }), "mixture_c1");
  EXPECT_EQ(tests::label_of([] { Mixture({1, 0}); }), "mixture_c1");
  EXPECT_EQ(tests::label_of([] { Mixture(std::vector<std::int64_t>(Mixture::most_sources + 1, 1)); }),
            "mixture_c1");
  EXPECT_EQ(tests::label_of([] { Mixture({Mixture::longest_period, 1}); }), "mixture_c2");
  EXPECT_EQ(tests::label_of([] { Mixture({INT64_MAX, INT64_MAX - 1}); }), "mixture_c2");
  EXPECT_EQ(Mixture({Mixture::longest_period - 1, 1}).period(), Mixture::longest_period);
}

// Each source is read epoch by epoch, whatever the others do, and nothing that is held out is.
RC_GTEST_PROP(Mixture, EachEpochOfASourceReadsItOnce, ()) {
  std::vector<std::int64_t> sizes(*rc::gen::inRange<std::size_t>(1, 5)), weights;
  for (std::int64_t& size : sizes) {
    size = *rc::gen::inRange<std::int64_t>(2, 40);
    weights.push_back(*rc::gen::inRange<std::int64_t>(1, 8));
  }
  const double share = *rc::gen::element(0.0, 0.25, 0.4);
  const SampleOrder order = order_of_sources(3, {.sequences = *rc::gen::inRange<std::int64_t>(1, 20)}, share,
                                             sizes, std::make_shared<Mixture>(weights));
  std::vector<std::set<std::int64_t>> epoch(sizes.size());
  std::set<std::int64_t> held_out;
  for (std::int64_t i = 0; i < order.held_out; ++i) held_out.insert(held_out_sample(order, i));
  RC_ASSERT(static_cast<std::int64_t>(held_out.size()) == order.held_out);
  std::vector<std::int64_t> read(sizes.size(), 0);
  for (std::int64_t step = 0; step < 30; ++step) {
    RC_ASSERT(read_before(order, step) == read);
    for (const std::int64_t id : step_samples(order, step)) {
      const std::size_t k = source_of(order, id);
      RC_ASSERT(!held_out.contains(id) && !is_held_out(order, id));
      RC_ASSERT(epoch[k].insert(id).second);
      if (static_cast<std::int64_t>(epoch[k].size()) == order.of_sources[k].trained()) epoch[k].clear();
      ++read[k];
    }
  }
  for (const std::int64_t id : held_out) RC_ASSERT(is_held_out(order, id));
}

RC_GTEST_PROP(Mixture, OfOneSourceIsTheOrderWithoutIt, ()) {
  const auto samples = *rc::gen::inRange<std::int64_t>(1, 100),
             sequences = *rc::gen::inRange<std::int64_t>(1, 30);
  const std::int64_t step = *rc::gen::inRange<std::int64_t>(0, 50);
  const auto mixed = order_of_sources(9, {.sequences = sequences}, 0, {samples},
                                      std::make_shared<Mixture>(std::vector<std::int64_t>{3}));
  RC_ASSERT(step_samples(mixed, step) == step_samples({9, samples, sequences}, step));
}

TEST(Mixture, SourcesOfOneSizeAreReadInOrdersOfTheirOwn) {
  const SampleOrder order = order_of_sources(5, {.sequences = 80}, 0, {40, 40},
                                             std::make_shared<Mixture>(std::vector<std::int64_t>{1, 1}));
  std::vector<std::int64_t> first, second;
  for (const std::int64_t id : step_samples(order, 0))
    id < 40 ? first.push_back(id) : second.push_back(id - 40);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_NE(first, second);
}

TEST(Mixture, IsOfAsManySourcesAsTheData) {
  EXPECT_EQ(tests::label_of([] {
              order_of_sources(0, {.sequences = 1}, 0, {1, 1}, nullptr);
            }),
            "sample_order_c5");
}

}  // namespace
}  // namespace assay::spec::data::mixture_test
