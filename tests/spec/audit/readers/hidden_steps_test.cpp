// labels: unit
// Lines that may be a step's and cannot be read: each stands for what it may hold, and excuses no lost line.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::hidden_steps_test {
namespace {

std::string nanogpt(int i) {
  char text[120];
  std::snprintf(text, sizeof text, "iter %d: loss %.4f, time %.2fms, mfu 30.00%%\n", i,
                10 - 5e-4 * (i % 9999), 240.0 + i % 7);
  return text;
}

std::string megatron(int i) {
  char text[400];
  std::snprintf(text, sizeof text,
                " iteration %8d/  100000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | "
                "learning rate: 1.000000E-04 | global batch size:   256 | lm loss: 4.720000E+00 | number of "
                "skipped iterations:   0 |\n",
                i, 256 * i, 1000.0 + i % 7);
  return text;
}

/// Steps 1 to `last` but for 30 and the `lost` ones behind it, where `instead` stands.
template <class Line>
Verdict steps(const Line& line, int last, const std::string& instead, int lost) {
  std::string log;
  for (int i = 1; i <= last; ++i) {
    if (i == 30) log += instead;
    if (i < 30 || i > 30 + lost) log += line(i);
  }
  return judge("steps", tests::read_text(log)).verdict;
}

TEST(HiddenStepsSpec, AStepThatIsCutExcusesOne) {
  for (const int last : {60, 8500})
    for (const std::string cut :
         {"iter 30...\n", "iter 30: loss 9...\n", "iter 30: loss 9.98\xe2\x80\xa6\n"}) {
      if (last > 60 && cut.size() < 12) continue;
      EXPECT_EQ(steps(nanogpt, last, cut, 0), Verdict::holds) << last << cut;
      EXPECT_EQ(steps(nanogpt, last, cut, 1), Verdict::contradicts) << last << cut;
      EXPECT_EQ(steps(nanogpt, last, cut + cut, 1), Verdict::holds) << last << cut;
    }
  EXPECT_EQ(steps(nanogpt, 60, "...\n", 10), Verdict::holds);
}

/// Two writers that did not wait for each other leave more than one step in a line; a torn one has the rest
/// of two.
TEST(HiddenStepsSpec, AnUnreadLineExcusesAsManyAsItMayHold) {
  const std::string torn = megatron(30).substr(0, 90) + "\n";
  for (const int last : {60, 8500}) {
    for (const int lost : {0, 1}) EXPECT_EQ(steps(megatron, last, torn, lost), Verdict::holds) << last;
    EXPECT_EQ(steps(megatron, last, torn, 20), Verdict::contradicts) << last;
  }
}

/// What a run that is quoted twice cannot show the second time.
TEST(HiddenStepsSpec, ThoseOfASecondQuotationStay) {
  const auto quoted = [](const std::string& between) {
    std::string log;
    for (int i = 0; i < 8; ++i) log += nanogpt(i);
    log += "Later in the same run:\n";
    for (int i = 0; i < 12; ++i) log += nanogpt(i);
    log += between;
    for (int i = 13; i < 20; ++i) log += nanogpt(i);
    return judge("steps", tests::read_text(log)).verdict;
  };
  EXPECT_EQ(quoted("iter 12...\n"), Verdict::holds);
  EXPECT_EQ(quoted(""), Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::hidden_steps_test
