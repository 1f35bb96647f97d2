// labels: unit
// Counts since the start that jump or stand still at single lines are told so, with the lines.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::uneven_counts_test {
namespace {

using More = std::function<double(int step)>;  ///< than the batch that step adds to the count

/// Sixty steps of 128 sequences of 2,048 tokens, step i on line i + 1.
Audit of(const More& more, bool tokens = false) {
  std::string log = "step,loss,seen\n";
  double seen = 0;
  for (int i = 1; i <= 60; ++i) {
    seen += (128 + more(i)) * (tokens ? 2048 : 1);
    log += std::to_string(i) + ",4.0," + std::to_string(static_cast<long long>(seen)) + "\n";
  }
  return audit(tests::read_text(
      log, "sequences=128,sequence_length=2048",
      tokens ? "step=step,loss=loss,tokens_total=seen" : "step=step,loss=loss,sequences_total=seen"));
}

std::string told(const Audit& audit, const char* id = "sequences_total") {
  const Result& result = tests::result_of(audit, id);
  return result.verdict != Verdict::contradicts ? std::string(to_string(result.verdict))
                                                : result.causes.at(0).text;
}

constexpr char others[] = "; from line to line the others grow as the steps do";

TEST(UnevenCountsSpec, AJumpAndACountThatStandsStillAreTold) {
  EXPECT_EQ(told(of([](int) { return 0; })), "holds");
  EXPECT_EQ(
      told(of([](int i) { return i == 35 ? 12800 : 0; })),
      std::string("sequences since the start jump at line 36, by 12,800 more than the steps make") + others);
  EXPECT_EQ(told(of([](int i) { return i >= 30 && i < 40 ? -128 : 0; })),
            std::string("sequences since the start stand still from line 31 to line 40") + others);
  EXPECT_EQ(told(of([](int i) { return i == 30   ? -28
                                       : i == 40 ? 64
                                                 : 0; })),
            std::string("sequences since the start grow at line 31 by 28 less than the steps make, and they "
                        "jump at line 41, by 64 more than the steps make") +
                others);
  EXPECT_EQ(
      told(of([](int i) { return i == 35 ? 100 : 0; }, true), "tokens_total"),
      std::string("tokens since the start jump at line 36, by 204,800 more than the steps make") + others);
}

TEST(UnevenCountsSpec, ACountOfAnotherBatchIsNoJump) {
  const std::string twice = told(of([](int) { return 128; }));
  EXPECT_EQ(twice.find("jump"), std::string::npos) << twice;
  const std::string often = told(of([](int i) { return i % 2 ? 128 : 0; }));
  EXPECT_EQ(often.find("jump"), std::string::npos) << often;
}

}  // namespace
}  // namespace assay::spec::audit::uneven_counts_test
