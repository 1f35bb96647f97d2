// labels: unit property
#include "spec/metrics/bus_bandwidth.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "spec/parallel/volume.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::metrics::bus_bandwidth_test {
namespace {

TEST(BusBandwidthSpec, TheExampleOfThePage) {
  const Count bytes(400'000'000);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(bytes, 2e-3), 200e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::all_reduce, bytes, 2e-3, 4), 300e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::reduce_scatter, bytes, 2e-3, 4), 150e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::all_gather, bytes, 2e-3, 4), 150e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::all_to_all, bytes, 2e-3, 4), 150e9);
}

TEST(BusBandwidthSpec, TwoRanksSendHalfOfWhatIsGatheredAndAllOfWhatIsSummed) {
  EXPECT_EQ(bus_factor(Collective::all_reduce, 2), 1);
  EXPECT_EQ(bus_factor(Collective::reduce_scatter, 2), 0.5);
  EXPECT_EQ(bus_factor(Collective::all_gather, 2), 0.5);
  EXPECT_EQ(bus_factor(Collective::all_to_all, 2), 0.5);
}

TEST(BusBandwidthSpec, NamesAreThoseOfTheLibrary) {
  EXPECT_EQ(to_string(Collective::all_reduce), "all_reduce");
  EXPECT_EQ(to_string(Collective::reduce_scatter), "reduce_scatter");
  EXPECT_EQ(to_string(Collective::all_gather), "all_gather");
  EXPECT_EQ(to_string(Collective::all_to_all), "all_to_all");
}

struct Drawn {
  std::int64_t ranks, bytes;
  double seconds;
};

Drawn draw() {
  return {.ranks = *rc::gen::inRange<std::int64_t>(2, 2000),
          .bytes = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 50),
          .seconds = 1e-9 * static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000))};
}

bool close(double a, double b) { return std::abs(a - b) <= 8 * std::numeric_limits<double>::epsilon() * b; }

Volume volume_of(Collective collective, std::int64_t bytes) {
  Volume volume;
  volume[collective] = Count(bytes);
  return volume;
}

RC_GTEST_PROP(BusBandwidthSpecProperty, OverItsTimeItIsWhatEveryRankSends, ()) {
  const Drawn d = draw();
  for (const Collective collective : ring_collectives)
    RC_ASSERT(close(bus_bandwidth(collective, d.bytes, d.seconds, d.ranks) * d.seconds,
                    sent_bytes(volume_of(collective, d.bytes), d.ranks)));
}

RC_GTEST_PROP(BusBandwidthSpecProperty, AnAllReduceIsAReduceScatterAndAnAllGatherOfTheSameRate, ()) {
  const Drawn d = draw();
  const double half = bus_bandwidth(Collective::reduce_scatter, d.bytes, d.seconds, d.ranks);
  RC_ASSERT(half == bus_bandwidth(Collective::all_gather, d.bytes, d.seconds, d.ranks));
  RC_ASSERT(close(bus_bandwidth(Collective::all_reduce, d.bytes, 2 * d.seconds, d.ranks), half));
}

RC_GTEST_PROP(BusBandwidthSpecProperty, AtOneRateMoreRanksTakeLonger, ()) {
  const Drawn d = draw();
  for (const Collective collective : ring_collectives)
    RC_ASSERT(bus_factor(collective, d.ranks + 1) > bus_factor(collective, d.ranks));
}

TEST(BusBandwidthSpec, C1OneRankIsRefused) {
  for (const std::int64_t ranks : {1, 0, -2}) {
    EXPECT_EQ(tests::label_of([&] { bus_factor(Collective::all_gather, ranks); }), "bus_bandwidth_c1");
    EXPECT_EQ(tests::label_of([&] { bus_bandwidth(Collective::all_gather, 8, 1, ranks); }),
              "bus_bandwidth_c1");
  }
}

TEST(BusBandwidthSpec, C2NoBytesOrNoTimeIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(tests::label_of([] { algorithm_bandwidth(0, 1); }), "bus_bandwidth_c2");
  for (const double seconds : {0.0, -1.0, nan, inf})
    EXPECT_EQ(tests::label_of([&] { algorithm_bandwidth(8, seconds); }), "bus_bandwidth_c2") << seconds;
}

}  // namespace
}  // namespace assay::spec::metrics::bus_bandwidth_test
