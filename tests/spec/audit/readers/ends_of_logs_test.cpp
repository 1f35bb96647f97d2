// labels: unit
// Losses that JSON says to be null, and last rows of tables that nothing ends.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::ends_of_logs_test {
namespace {

using tests::read_mapped;

bool loss_is_finite(const RunRecord& run) {
  return judge("loss_finite", run).verdict != Verdict::contradicts;
}

/// A row of JSON lines, `loss` as it is written.
std::string row(int step, const std::string& loss,
                const std::string& rest = ", \"lr\": 1e-4, \"grad_norm\": 1.5") {
  return "{\"step\": " + std::to_string(step) + ", \"loss\": " + loss + rest + "}\n";
}

TEST(EndsOfLogsSpec, LlamaFactorysLinesWithoutALossAreNoSteps) {
  const std::string log =
      "{\"current_steps\": 8, \"total_steps\": 9, \"loss\": 2.3997, \"lr\": 1.46e-05, \"epoch\": 2.69}\n"
      "{\"current_steps\": 8, \"total_steps\": 9, \"eval_loss\": 2.41, \"epoch\": 2.69}\n"
      "{\"current_steps\": 9, \"total_steps\": 9, \"loss\": 2.3993, \"lr\": 3.8e-06, \"epoch\": 3.0}\n"
      "{\"current_steps\": 9, \"total_steps\": 9, \"epoch\": 3.0, \"elapsed_time\": \"0:05:37\"}\n";
  for (const char* map : {"", "step=current_steps,loss=loss"}) {
    const RunRecord run = read_mapped(log, map);
    EXPECT_EQ(run.steps.size(), 2u) << map;
    EXPECT_TRUE(consistent(run)) << contradictions(run);
  }
}

TEST(EndsOfLogsSpec, ALastLossThatIsNullIsNoNumber) {
  const RunRecord run = read_mapped(row(1, "10.9") + row(2, "10.1") + row(3, "null"));
  ASSERT_EQ(run.steps.size(), 3u);
  ASSERT_TRUE(run.steps[2][Field::loss]);
  EXPECT_TRUE(std::isnan(run.steps[2][Field::loss]->value));
  EXPECT_EQ(run.null_losses.count, 1);
  EXPECT_EQ(run.null_losses.line, 3);
  EXPECT_EQ(run.null_losses.at_end, 1);
  EXPECT_FALSE(loss_is_finite(run));
}

TEST(EndsOfLogsSpec, LossesThatAreNullBetweenOthersWereNotPrinted) {
  std::string log;
  for (int step = 1; step <= 25; ++step) log += row(step, step % 10 == 1 ? "9.5" : "null");
  const RunRecord run = read_mapped(log);
  ASSERT_EQ(run.steps.size(), 25u);
  EXPECT_EQ(run.null_losses.count, 22);
  EXPECT_EQ(run.null_losses.at_end, 0);
  EXPECT_FALSE(run.steps[1][Field::loss]);
  EXPECT_TRUE(run.steps[1][Field::learning_rate]);
  EXPECT_TRUE(loss_is_finite(run));
  // More of them at the end than ever stood together: the loss stayed away.
  for (int step = 26; step <= 31; ++step) log += row(step, "null");
  EXPECT_EQ(read_mapped(log).null_losses.at_end, 10);
  EXPECT_FALSE(loss_is_finite(read_mapped(log)));
}

TEST(EndsOfLogsSpec, ARowOfAValidationIsNoStep) {
  // As tables write them that were put together from several.
  const std::string validation = ", \"lr\": null, \"grad_norm\": null, \"val_loss\": 9.0";
  const RunRecord run = read_mapped(row(1, "10.9") + row(2, "10.1") + row(2, "null", validation) +
                                    row(3, "9.9") + row(3, "null", validation));
  EXPECT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.null_losses.count, 0);
  EXPECT_TRUE(loss_is_finite(run));
  // With nothing but losses the number tells it.
  const RunRecord losses =
      read_mapped(row(1, "10.9", "") + row(2, "10.1", "") + row(2, "null", ", \"val_loss\": 9.0"));
  EXPECT_EQ(losses.steps.size(), 2u);
  EXPECT_EQ(read_mapped(row(1, "10.9", "") + row(2, "10.1", "") + row(3, "null", "")).null_losses.at_end, 1);
}

TEST(EndsOfLogsSpec, ALogWithoutAnyLossSaysNothingOfOne) {
  const RunRecord run = read_mapped(row(1, "null") + row(2, "null") + row(3, "null"));
  EXPECT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.null_losses.at_end, 0);
  EXPECT_TRUE(loss_is_finite(run));
}

TEST(EndsOfLogsSpec, DocumentsHaveThemToo) {
  const auto history = [](const std::string& last) {
    return "{\"log_history\": [{\"loss\": 2.5, \"learning_rate\": 1e-4, \"step\": 1},\n"
           "{\"loss\": 2.4, \"learning_rate\": 1e-4, \"step\": 2},\n"
           "{\"eval_loss\": 2.4, \"step\": 2},\n{\"loss\": " +
           last + ", \"learning_rate\": 1e-4, \"step\": 3}]}\n";
  };
  EXPECT_EQ(read_mapped(history("2.3")).null_losses.count, 0);
  const RunRecord run = read_mapped(history("null"));
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.null_losses.line, 4);
  EXPECT_FALSE(loss_is_finite(run));
  const RunRecord mapped =
      read_mapped("{\"rows\": [{\"n\": 1, \"l\": 2.5, \"t\": 1.0},\n{\"n\": 2, \"l\": null, \"t\": 1.0}]}\n",
                  "step=n,loss=l,seconds=t");
  ASSERT_EQ(mapped.steps.size(), 2u);
  EXPECT_EQ(mapped.null_losses.at_end, 1);
}

TEST(EndsOfLogsSpec, AWholeLastRowWithoutItsEndCounts) {
  const std::string table = "step,loss,time\n1,10.9,0.5000\n2,10.1,0.5000\n";
  const RunRecord run = read_mapped(table + "3,NaN,0.50", "step=step,loss=loss,seconds=time");
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_TRUE(run.truncated);
  EXPECT_EQ(run.unread_lines, 0);
  EXPECT_FALSE(loss_is_finite(run));
  // Its last number may have lost digits.
  EXPECT_FALSE(run.steps[2][Field::seconds]);
  const RunRecord half = read_mapped(table + "3,Na", "step=step,loss=loss,seconds=time");
  EXPECT_EQ(half.steps.size(), 2u);
  EXPECT_EQ(half.unread_lines, 1);
  ASSERT_EQ(half.unread_quotes.size(), 1u);
  EXPECT_EQ(half.unread_quotes[0].text, "3,Na");
}

TEST(EndsOfLogsSpec, AWordThatEndsALastRowIsWhole) {
  for (const std::string word : {"nan", "inf"}) {
    const RunRecord run = read_mapped("step,time,loss\n1,0.5,10.9\n2,0.5,10.1\n3,0.5," + word,
                                      "step=step,loss=loss,seconds=time");
    ASSERT_EQ(run.steps.size(), 3u) << word;
    EXPECT_FALSE(loss_is_finite(run)) << word;
  }
}

TEST(EndsOfLogsSpec, AStateBeforeAnythingWasLoggedIsToldSo) {
  for (const std::string text : {R"({"global_step": 3, "log_history": [], "max_steps": 10})",
                                 "{\n  \"log_history\": [],\n  \"max_steps\": 10\n}\n"}) {
    std::istringstream in(text);
    try {
      read_log(in, "trainer_state.json");
      FAIL() << "read";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("before anything was logged"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::spec::audit::ends_of_logs_test
