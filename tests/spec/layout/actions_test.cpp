// labels: unit property
#include "spec/layout/actions.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::actions_test {
namespace {

using Actions = std::vector<Action>;
constexpr auto forward = ActionKind::forward, backward = ActionKind::backward, reduce = ActionKind::reduce,
               clip = ActionKind::clip, update = ActionKind::update;

std::string label_of(const Actions& actions, std::int64_t accumulation, std::int64_t ranks) {
  try {
    check_actions(actions, accumulation, ranks);
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

TEST(ActionsSpec, FollowTheSpecExample) {
  EXPECT_EQ(step_actions(2, 2),
            (Actions{{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}, {reduce}, {clip}, {update}}));
  EXPECT_EQ(step_actions(1, 1), (Actions{{forward, 0}, {backward, 0}, {clip}, {update}}));
}

TEST(ActionsSpec, AcceptAPipelinesOrder) {
  EXPECT_EQ(label_of({{forward, 0},
                      {forward, 1},
                      {backward, 0},
                      {forward, 2},
                      {backward, 1},
                      {backward, 2},
                      {clip},
                      {update}},
                     3, 1),
            "accepted");
}

TEST(ActionsSpec, C1RejectsAStepOfNothing) {
  EXPECT_THROW(step_actions(0, 1), SpecError);
  EXPECT_THROW(step_actions(1, 0), SpecError);
  EXPECT_EQ(label_of({}, 0, 1), "layout_c1");
}

TEST(ActionsSpec, C2RejectsWrongMicroBatchNumbers) {
  EXPECT_EQ(label_of({{forward, 1}}, 1, 1), "layout_c2");
  EXPECT_EQ(label_of({{forward, -1}}, 1, 1), "layout_c2");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip, 0}, {update}}, 1, 1), "layout_c2");
}

TEST(ActionsSpec, C3RejectsForwardTwiceOrNever) {
  EXPECT_EQ(label_of({{forward, 0}, {forward, 0}, {backward, 0}, {clip}, {update}}, 1, 1), "layout_c3");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {update}}, 2, 1), "layout_c3");
}

TEST(ActionsSpec, C4RejectsBackwardTwiceNeverOrEarly) {
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {backward, 0}, {clip}, {update}}, 1, 1), "layout_c4");
  EXPECT_EQ(label_of({{forward, 0}, {clip}, {update}}, 1, 1), "layout_c4");
  EXPECT_EQ(label_of({{backward, 0}, {forward, 0}, {clip}, {update}}, 1, 1), "layout_c4");
}

TEST(ActionsSpec, C5RejectsReductionsMissingEarlyRepeatedOrNeedless) {
  EXPECT_EQ(label_of(step_actions(2, 1), 2, 2), "layout_c5");
  EXPECT_EQ(label_of(step_actions(2, 2), 2, 1), "layout_c5");
  EXPECT_EQ(
      label_of({{forward, 0}, {backward, 0}, {reduce}, {forward, 1}, {backward, 1}, {clip}, {update}}, 2, 2),
      "layout_c5");
  // Accumulation reduced after every micro-batch.
  EXPECT_EQ(
      label_of(
          {{forward, 0}, {backward, 0}, {reduce}, {forward, 1}, {backward, 1}, {reduce}, {clip}, {update}}, 2,
          2),
      "layout_c5");
}

TEST(ActionsSpec, C6RejectsClipAndUpdateOutOfPlace) {
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {update}, {clip}}, 1, 1), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {clip}, {backward, 0}, {update}}, 1, 1), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {reduce}, {update}}, 1, 2), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}}, 1, 1), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {update}, {update}}, 1, 1), "layout_c6");
}

RC_GTEST_PROP(ActionsSpec, EveryStepKeepsTheRules, ()) {
  const auto accumulation = *rc::gen::inRange<std::int64_t>(1, 20),
             ranks = *rc::gen::inRange<std::int64_t>(1, 9);
  check_actions(step_actions(accumulation, ranks), accumulation, ranks);
}

/// One random edit of a right list: dropped, doubled or swapped actions. Accepted only where the rules allow
/// the order.
RC_GTEST_PROP(ActionsSpec, RefusesPlantedViolations, ()) {
  const auto accumulation = *rc::gen::inRange<std::int64_t>(1, 6),
             ranks = *rc::gen::inRange<std::int64_t>(1, 3);
  const Actions right = step_actions(accumulation, ranks);
  const auto i = *rc::gen::inRange<std::size_t>(0, right.size()),
             j = *rc::gen::inRange<std::size_t>(0, right.size());
  Actions wrong = right;
  wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
  RC_ASSERT(label_of(wrong, accumulation, ranks).find("layout_c") == 0);
  wrong = right;
  wrong.insert(wrong.begin() + static_cast<std::ptrdiff_t>(j), right[i]);
  RC_ASSERT(label_of(wrong, accumulation, ranks).find("layout_c") == 0);
  wrong = right;
  std::swap(wrong[i], wrong[j]);
  // A swap keeps the rules when both are forwards, or both backwards, of which none passes its partner.
  const auto place = [&](ActionKind kind, std::int64_t m) {
    return std::find(wrong.begin(), wrong.end(), Action{kind, m}) - wrong.begin();
  };
  bool kept = wrong.back().kind == update && wrong[wrong.size() - 2].kind == clip &&
              (ranks == 1 || wrong[wrong.size() - 3].kind == reduce);
  for (std::int64_t m = 0; m < accumulation; ++m) kept = kept && place(forward, m) < place(backward, m);
  RC_ASSERT((label_of(wrong, accumulation, ranks) == "accepted") == kept);
}

}  // namespace
}  // namespace assay::spec::actions_test
