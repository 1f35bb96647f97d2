// labels: unit
// Losses and gradient norms that no training has, and a first loss that is no mean over tokens.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spec/audit/invariants.hpp"
#include "tests/spec/audit/run_that_agrees.hpp"

namespace assay::spec::audit::invariants_of_losses_test {
namespace {

using tests::counted;
using tests::measured;
using tests::plain;

Verdict verdict(std::string_view id, const RunRecord& record) { return judge(id, record).verdict; }

TEST(InvariantsSpec, ImpossibleNumbersContradict) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RunRecord r = plain();
  r.steps[3][Field::loss] = exactly(nan, 4);
  EXPECT_EQ(judge("loss_finite", r).lines, std::vector<std::int64_t>{4});
  r = plain();
  r.steps[3][Field::loss] = counted(-0.5);
  EXPECT_EQ(verdict("loss_possible", r), Verdict::contradicts);
  r = plain();
  r.steps[3][Field::mfu] = measured(1.2, 0.01);
  EXPECT_EQ(verdict("mfu_possible", r), Verdict::contradicts);
  r.steps[3][Field::mfu] = exactly(-1);  // "-100.0 %": not measured
  EXPECT_EQ(verdict("mfu_possible", r), Verdict::holds);
}

TEST(InvariantsSpec, ALossBeyondWhatLogitsMakeContradicts) {
  RunRecord r = plain();
  r.steps[3][Field::loss] = exactly(5000, 4);
  const Result beyond = judge("loss_possible", r);
  EXPECT_EQ(beyond.verdict, Verdict::contradicts);
  EXPECT_EQ(beyond.lines, std::vector<std::int64_t>{4});
  ASSERT_EQ(beyond.causes.size(), 1);
  EXPECT_EQ(beyond.causes[0].id, "loss_too_large");
  // A diverged model is worse than log V, and that is told.
  r[Setting::vocab] = exactly(50257);
  r.steps[3][Field::loss] = exactly(120, 4);
  const Result diverged = judge("loss_possible", r);
  EXPECT_EQ(diverged.verdict, Verdict::holds);
  EXPECT_NE(diverged.note.find("diverged"), std::string::npos) << diverged.note;
}

// What is shown as held to is what was tested.
TEST(InvariantsSpec, APossibleLossLiesInTheShownBounds) {
  RunRecord r = plain();
  for (Step& step : r.steps) step[Field::loss] = exactly(2.99);
  r[Setting::loss_floor] = exactly(3.0);  // below by chance
  for (const double last : {2.99, 999.0, 1000.0}) {
    r.steps.back()[Field::loss] = exactly(last);
    const Result result = judge("loss_possible", r);
    EXPECT_EQ(result.verdict, Verdict::holds);
    EXPECT_LE(result.recomputed.low, result.printed);
    EXPECT_GE(result.recomputed.high, result.printed);
  }
}

TEST(InvariantsSpec, ANegativeGradientNormContradicts) {
  RunRecord r = plain();
  r.steps[3][Field::gradient_norm] = exactly(-2.1, 4);
  const Result result = judge("values_possible", r);
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.lines, std::vector<std::int64_t>{4});
  // DeepSpeed's -1 and what loss scaling leaves out are no lengths.
  for (const double other : {-1.0, std::numeric_limits<double>::infinity(), 0.0}) {
    r.steps[3][Field::gradient_norm] = exactly(other, 4);
    EXPECT_EQ(verdict("values_possible", r), Verdict::holds) << other;
  }
}

TEST(InvariantsSpec, ALossTimesTheAccumulation) {
  RunRecord r = plain();
  r[Setting::vocab] = counted(32000);
  r[Setting::accumulation] = counted(8);
  r.steps[0][Field::loss] = measured(10.8, 0.05);
  EXPECT_EQ(verdict("first_loss", r), Verdict::holds);
  r.steps[0][Field::loss] = measured(86.4, 0.05);
  EXPECT_EQ(judge("first_loss", r).causes.at(0).id, "loss_summed_over_passes");
  r.steps[0][Field::loss] = measured(10.8 / std::log(2.0), 0.05);
  EXPECT_EQ(verdict("first_loss", r), Verdict::holds) << "as of a model of 16,384 dimensions";
  r[Setting::width] = counted(2048);
  EXPECT_EQ(judge("first_loss", r).causes.at(0).id, "loss_in_bits");
  // Where no passes are stated a sum of some number of them is as good a name as bad weights.
  r[Setting::accumulation].reset();
  r.steps[0][Field::loss] = measured(54, 0.05);
  const Result open = judge("first_loss", r);
  ASSERT_EQ(open.causes.size(), 2u);
  EXPECT_EQ(open.causes[0].id, "loss_summed_over_passes");
  EXPECT_NE(open.causes[0].text.find("about 5 micro-batches or ranks"), std::string::npos);
  EXPECT_EQ(open.causes[1].id, "loss_bad_start");
}

}  // namespace
}  // namespace assay::spec::audit::invariants_of_losses_test
