// labels: unit
// Numbers of single lines that the lines around them, or the others of their line, deny.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/error.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::lone_numbers_test {
namespace {

using tests::read_text;

/// Twelve steps of 65,536 tokens in 1.2 s.
struct Table {
  double tokens_per_second = 54613;
  int odd = 0;  // the line whose numbers are given
  double odd_total = -1, odd_rate = -1, odd_learning_rate = -1;
  double falls_from = 1e9;  // the first step of another count of tokens
  bool padded = false;      // inputs of other lengths
  double small_last = 0;    // tokens of the last step, where given

  RunRecord record(const std::string& set = "") const {
    std::string out = "step,loss,seconds,tokens_per_second,tokens_total,learning_rate\n";
    double total = 0;
    for (int n = 1; n <= 12; ++n) {
      double tokens = padded ? 65536 - 4000 * (n % 3) : 65536;
      if (n == 12 && small_last > 0) tokens = small_last;
      total = n == falls_from ? tokens : total + tokens;
      const bool here = n == odd;
      const auto or_odd = [&](double number, double other) {
        return std::to_string(here && other >= 0 ? other : number);
      };
      out += std::to_string(n) + "," + std::to_string(10.9 - 0.05 * n) + ",1.2," +
             std::to_string(std::llround(here && odd_rate >= 0 ? odd_rate : tokens_per_second)) + "," +
             std::to_string(std::llround(here && odd_total >= 0 ? odd_total : total)) + "," +
             or_odd(0.001, odd_learning_rate) + "\n";
    }
    return read_text(out, set);
  }
  Result of(std::string_view id) const { return judge(id, record()); }
};

TEST(LoneNumbersSpec, GrowthOfTheTokensIsTheBatchThatRateTimesTimeIsHeldTo) {
  EXPECT_EQ(Table().of("rate_time").verdict, Verdict::holds);
  EXPECT_EQ(Table().of("tokens_total").verdict, Verdict::holds);
  Table low;
  low.tokens_per_second = 6827;
  EXPECT_EQ(low.of("rate_time").verdict, Verdict::contradicts);
  EXPECT_EQ(low.of("tokens_total").verdict, Verdict::holds);
  // One line that is wrong leaves the growth of the others.
  low.odd = 7, low.odd_total = 400000;
  EXPECT_EQ(low.of("rate_time").verdict, Verdict::contradicts);
  EXPECT_EQ(low.of("tokens_total").lines, std::vector<std::int64_t>{8});
}

TEST(LoneNumbersSpec, TokensThatGrowUnlikeAreNoBatch) {
  Table padded, resumed;
  padded.padded = true;
  resumed.falls_from = 6;
  for (Table table : {padded, resumed}) {
    table.tokens_per_second = 6827;
    EXPECT_EQ(table.of("rate_time").verdict, Verdict::cannot_be_judged);
    EXPECT_EQ(table.of("tokens_total").verdict, Verdict::cannot_be_judged);
    EXPECT_EQ(table.of("values_possible").verdict, Verdict::holds);
  }
}

TEST(LoneNumbersSpec, ACountOfOneLineAloneContradictsWhetherItFallsOrRises) {
  for (const double wrong : {1000.0, 0.0, 5e8}) {
    Table table;
    table.padded = true;  // no batch to hold it to
    table.odd = 7, table.odd_total = wrong;
    const Result result = table.of("values_possible");
    EXPECT_EQ(result.verdict, Verdict::contradicts) << wrong;
    EXPECT_EQ(result.lines, std::vector<std::int64_t>{8}) << wrong;
    EXPECT_EQ(result.causes.at(0).id, "count_of_a_line");
  }
}

TEST(LoneNumbersSpec, ARateOfZeroBesideATimeContradicts) {
  Table zero;
  zero.odd = 7, zero.odd_rate = 0;
  EXPECT_EQ(zero.of("values_possible").lines, std::vector<std::int64_t>{8});
  EXPECT_EQ(zero.of("values_possible").causes.at(0).id, "zero_of_a_line");
  // Not measured yet.
  zero.odd = 1;
  EXPECT_EQ(zero.of("values_possible").verdict, Verdict::holds);
  // As slow as what is printed as 0.
  zero.odd = 7, zero.tokens_per_second = 4;
  EXPECT_EQ(zero.of("values_possible").verdict, Verdict::holds);
}

TEST(LoneNumbersSpec, OneLearningRateFarFromThoseAroundItContradicts) {
  for (const double wrong : {1000.0, 0.02, 0.000004}) {
    Table table;
    table.odd = 7, table.odd_learning_rate = wrong;
    EXPECT_EQ(table.of("learning_rate").lines, std::vector<std::int64_t>{8}) << wrong;
  }
  for (const double possible : {0.0, 0.0005, 0.009, 0.00002}) {
    Table table;
    table.odd = 7, table.odd_learning_rate = possible;
    EXPECT_EQ(table.of("learning_rate").verdict, Verdict::cannot_be_judged) << possible;
  }
  Table first;  // a warm-up's
  first.odd = 1, first.odd_learning_rate = 1e-9;
  EXPECT_EQ(first.of("learning_rate").verdict, Verdict::cannot_be_judged);
}

TEST(LoneNumbersSpec, TenTimesTheRateOfAFallingScheduleIsTenTimesWhatLiesBetween) {
  const auto log = [](int odd) {
    std::string out = "step,loss,learning_rate\n";
    for (int n = 1; n <= 20; ++n)
      out += std::to_string(n) + ",3." + std::to_string(n) + "," +
             std::to_string(1e-3 * (21 - n) / 20 * (n == odd ? 10 : 1)) + "\n";
    return judge("learning_rate", read_text(out));
  };
  EXPECT_EQ(log(0).verdict, Verdict::cannot_be_judged);
  for (const int odd : {2, 10, 17}) EXPECT_EQ(log(odd).lines, std::vector<std::int64_t>{odd + 1}) << odd;
}

TEST(LoneNumbersSpec, StatedDimensionsThatMakeNoModelAreAUsageError) {
  for (const char* set : {"heads=7", "kv_heads=5", "heads=1e18"}) try {
      judge("steps", Table().record(std::string("model=llama3-8b,") + set));
      ADD_FAILURE() << set;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(std::string("--set ") + set), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("llama3-8b"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace assay::spec::audit::lone_numbers_test
