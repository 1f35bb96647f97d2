// labels: unit
// Numbers of a table that were rounded to whole ones and written with a decimal.
#include "spec/audit/readers/whole_columns.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::whole_columns_test {
namespace {

/// 262,144 tokens a step; `form`: of tokens/s, which are `times` as many, rounded to `unit`.
RunRecord table(const char* form, double unit, double times = 1) {
  std::string text;
  for (int i = 1; i <= 20; ++i) {
    const double ms = 1808.02 + 1.37 * i, rate = times * 262144 / (1e-3 * ms);
    char line[200], number[40];
    std::snprintf(number, sizeof number, form, unit * std::round(rate / unit));
    std::snprintf(line, sizeof line, "{\"iter\": %d, \"loss\": 9.5, \"ms\": %.2f, \"tok_s\": %s}\n", i, ms,
                  number);
    text += line;
  }
  return tests::read_text(text, "sequences=64,sequence_length=4096",
                          "step=iter,loss=loss,seconds=ms:ms,tokens_per_second=tok_s");
}

Verdict of(const RunRecord& record) { return judge("rate_time", record).verdict; }

TEST(WholeColumnsSpec, RoundedToWholeOnesAndWrittenWithADecimalTheyHold) {
  EXPECT_EQ(of(table("%.0f", 1)), Verdict::holds);
  EXPECT_EQ(of(table("%.1f", 1)), Verdict::holds) << "144990.0 is 144,990 rounded";
  EXPECT_EQ(of(table("%.1f", 0.1)), Verdict::holds);
  EXPECT_NEAR(table("%.1f", 1).steps[0][Field::tokens_per_second]->high -
                  table("%.1f", 1).steps[0][Field::tokens_per_second]->low,
              1, 1e-6);
}

TEST(WholeColumnsSpec, ATenthIsATenthWhereOneOfThemShowsIt) {
  EXPECT_NEAR(table("%.1f", 0.1).steps[0][Field::tokens_per_second]->high -
                  table("%.1f", 0.1).steps[0][Field::tokens_per_second]->low,
              0.1, 1e-6);
}

TEST(WholeColumnsSpec, ALieOfMoreThanTheRoundingIsFound) {
  EXPECT_EQ(of(table("%.1f", 1, 1.001)), Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::whole_columns_test
