// labels: unit
// The loss that a log says its run ended with, where lines of its last steps are damaged or were not logged.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::final_loss_test {
namespace {

Verdict final_of(const std::string& log) { return judge("final", tests::read_text(log)).verdict; }

/// `log` with its loss of the last `lines` steps under another key, which its reader does not know.
std::string damaged(std::string log, int lines) {
  for (std::size_t at = log.size(); lines > 0; --lines) {
    at = log.rfind("\"event\":\"step\"", at - 1);
    log.replace(log.find("\"loss\":", at), 6, "\"lo s\"");
  }
  return log;
}

/// Every number of `name` times `factor`, plus `more`.
std::string changed(std::string log, const std::string& name, double more) {
  const std::size_t key = log.find("\"" + name + "\":"), number = log.find_first_of("0123456789", key),
                    end = log.find_first_not_of("0123456789.e+-", number);
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", std::stod(log.substr(number, end - number)) + more);
  return log.replace(number, end - number, text);
}

TEST(FinalLossSpec, LinesThatCannotBeReadAreNotHeldAgainstIt) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string log = tests::render(tests::simulate(tests::LogFormat::assay, seed));
    ASSERT_EQ(final_of(log), Verdict::holds) << seed;
    EXPECT_EQ(final_of(changed(log, "final_loss", 0.1)), Verdict::contradicts) << seed;
    for (const int lines : {1, 2})
      EXPECT_EQ(final_of(damaged(log, lines)), Verdict::cannot_be_judged) << seed << " " << lines;
  }
}

/// llm_TII prints every so many steps, and the loss of the last one at the end: near that of the last line,
/// by as much as the lines scatter.
TEST(FinalLossSpec, ALossOfAStepThatIsNotLoggedLiesNearTheLastOnes) {
  int judged = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string log = tests::render(tests::simulate(tests::LogFormat::llm_tii_json, seed, 400));
    ASSERT_NE(final_of(log), Verdict::contradicts) << seed;
    if (final_of(log) != Verdict::holds) continue;
    ++judged;
    for (const double more : {0.6, -0.6})
      EXPECT_EQ(final_of(changed(log, "final_train_loss", more)), Verdict::contradicts)
          << seed << " " << more;
  }
  EXPECT_GE(judged, 10);
}

}  // namespace
}  // namespace assay::spec::audit::final_loss_test
