// labels: unit property
#include "spec/schedule/actions.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::actions_test {
namespace {

using Actions = std::vector<Action>;
constexpr auto forward = ActionKind::forward, backward = ActionKind::backward,
               all_reduce = ActionKind::all_reduce, reduce_scatter = ActionKind::reduce_scatter,
               clip = ActionKind::clip, update = ActionKind::update, all_gather = ActionKind::all_gather;

const Layout alone, replicate = layout_of(DataParallel::replicate, 2),
                    zero1 = layout_of(DataParallel::zero1, 2), shard = layout_of(DataParallel::shard, 2),
                    hybrid = layout_of(DataParallel::hybrid, 4, 2);

std::string label_of(const Actions& actions, std::int64_t accumulation, const Layout& layout) {
  try {
    check_actions(actions, accumulation, layout);
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

TEST(ActionsSpec, FollowTheSpecExamples) {
  const Actions whole = {{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}};
  const auto then = [&](const Actions& rest) {
    Actions all = whole;
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  EXPECT_EQ(step_actions(2, alone), then({{clip}, {update}}));
  EXPECT_EQ(step_actions(2, replicate), then({{all_reduce}, {clip}, {update}}));
  EXPECT_EQ(step_actions(2, zero1), then({{reduce_scatter}, {clip}, {update}, {all_gather}}));
  const Actions scattered = {{forward, 0}, {backward, 0}, {reduce_scatter, 0},
                             {forward, 1}, {backward, 1}, {reduce_scatter, 1}};
  Actions wanted = scattered;
  wanted.insert(wanted.end(), {{clip}, {update}});
  EXPECT_EQ(step_actions(2, shard), wanted);
  wanted = scattered;
  wanted.insert(wanted.end(), {{all_reduce}, {clip}, {update}});
  EXPECT_EQ(step_actions(2, hybrid), wanted);
}

TEST(ActionsSpec, OneRankIsTheSameInEveryLayout) {
  for (DataParallel data :
       {DataParallel::replicate, DataParallel::zero1, DataParallel::shard, DataParallel::hybrid})
    EXPECT_EQ(step_actions(3, layout_of(data, 1, data == DataParallel::hybrid ? 1 : 0)),
              step_actions(3, alone));
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
                     3, alone),
            "accepted");
}

TEST(ActionsSpec, C1RejectsAStepOfNothing) {
  EXPECT_THROW(step_actions(0, alone), SpecError);
  EXPECT_THROW(step_actions(1, {.ranks = 0}), SpecError);
  EXPECT_THROW(step_actions(1, {.ranks = 4, .shard_ranks = 3}), SpecError);
  EXPECT_EQ(label_of({}, 0, alone), "layout_c1");
}

TEST(ActionsSpec, C2RejectsWrongMicroBatchNumbers) {
  EXPECT_EQ(label_of({{forward, 1}}, 1, alone), "layout_c2");
  EXPECT_EQ(label_of({{forward, -1}}, 1, alone), "layout_c2");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip, 0}, {update}}, 1, alone), "layout_c2");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {reduce_scatter}, {clip}, {update}}, 1, shard),
            "layout_c2");
  EXPECT_EQ(
      label_of({{forward, 0}, {backward, 0}, {reduce_scatter, 0}, {clip}, {update}, {all_gather}}, 1, zero1),
      "layout_c2");
}

TEST(ActionsSpec, C3RejectsForwardTwiceOrNever) {
  EXPECT_EQ(label_of({{forward, 0}, {forward, 0}, {backward, 0}, {clip}, {update}}, 1, alone), "layout_c3");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {update}}, 2, alone), "layout_c3");
}

TEST(ActionsSpec, C4RejectsBackwardTwiceNeverOrEarly) {
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {backward, 0}, {clip}, {update}}, 1, alone), "layout_c4");
  EXPECT_EQ(label_of({{forward, 0}, {clip}, {update}}, 1, alone), "layout_c4");
  EXPECT_EQ(label_of({{backward, 0}, {forward, 0}, {clip}, {update}}, 1, alone), "layout_c4");
}

TEST(ActionsSpec, C5RejectsAllReducesMissingEarlyRepeatedOrNeedless) {
  EXPECT_EQ(label_of(step_actions(2, alone), 2, replicate), "layout_c5");
  EXPECT_EQ(label_of(step_actions(2, replicate), 2, alone), "layout_c5");
  EXPECT_EQ(label_of(step_actions(2, shard), 2, hybrid), "layout_c5");
  EXPECT_EQ(label_of(step_actions(2, hybrid), 2, shard), "layout_c5");
  EXPECT_EQ(
      label_of({{forward, 0}, {backward, 0}, {all_reduce}, {forward, 1}, {backward, 1}, {clip}, {update}}, 2,
               replicate),
      "layout_c5");
  EXPECT_EQ(
      label_of({{forward, 0}, {backward, 0}, {all_reduce}, {reduce_scatter, 0}, {clip}, {update}}, 1, hybrid),
      "layout_c5");
}

TEST(ActionsSpec, C5RejectsAccumulationSyncedEveryMicroBatch) {
  EXPECT_EQ(label_of({{forward, 0},
                      {backward, 0},
                      {all_reduce},
                      {forward, 1},
                      {backward, 1},
                      {all_reduce},
                      {clip},
                      {update}},
                     2, replicate),
            "layout_c5");
}

TEST(ActionsSpec, C6RejectsClipAndUpdateOutOfPlace) {
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {update}, {clip}}, 1, alone), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {clip}, {backward, 0}, {update}}, 1, alone), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {all_reduce}, {update}}, 1, replicate),
            "layout_c6");
  EXPECT_EQ(
      label_of({{forward, 0}, {backward, 0}, {clip}, {reduce_scatter}, {update}, {all_gather}}, 1, zero1),
      "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}}, 1, alone), "layout_c6");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {update}, {update}}, 1, alone), "layout_c6");
}

TEST(ActionsSpec, C7RejectsReduceScattersMissingLateOrNeedless) {
  EXPECT_EQ(label_of(step_actions(2, alone), 2, shard), "layout_c7");
  EXPECT_EQ(label_of(step_actions(2, alone), 2, zero1), "layout_c7");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {reduce_scatter}, {clip}, {update}}, 1, alone),
            "layout_c7");
  EXPECT_EQ(label_of({{forward, 0},
                      {backward, 0},
                      {forward, 1},
                      {backward, 1},
                      {reduce_scatter, 0},
                      {reduce_scatter, 1},
                      {clip},
                      {update}},
                     2, shard),
            "layout_c7");
  EXPECT_EQ(label_of({{forward, 0},
                      {backward, 0},
                      {reduce_scatter},
                      {forward, 1},
                      {backward, 1},
                      {reduce_scatter},
                      {clip},
                      {update},
                      {all_gather}},
                     2, zero1),
            "layout_c7");
}

TEST(ActionsSpec, C8RejectsStaleWeightsAndNeedlessGathers) {
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {reduce_scatter}, {clip}, {update}}, 1, zero1),
            "layout_c8");
  EXPECT_EQ(
      label_of({{forward, 0}, {backward, 0}, {reduce_scatter}, {clip}, {all_gather}, {update}}, 1, zero1),
      "layout_c8");
  EXPECT_EQ(label_of({{forward, 0}, {backward, 0}, {clip}, {update}, {all_gather}}, 1, alone), "layout_c8");
}

Layout draw_layout() {
  const auto data = *rc::gen::element(DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                      DataParallel::hybrid);
  const auto shard_ranks = *rc::gen::inRange<std::int64_t>(1, 5),
             replicas = *rc::gen::inRange<std::int64_t>(1, 4);
  return layout_of(data, shard_ranks * replicas, data == DataParallel::hybrid ? shard_ranks : 0);
}

RC_GTEST_PROP(ActionsSpec, EveryStepKeepsTheRules, ()) {
  const auto accumulation = *rc::gen::inRange<std::int64_t>(1, 20);
  const Layout layout = draw_layout();
  check_actions(step_actions(accumulation, layout), accumulation, layout);
}

/// One random edit of a right list: dropped, doubled or swapped actions. Accepted only where the rules allow
/// the order.
RC_GTEST_PROP(ActionsSpec, RefusesPlantedViolations, ()) {
  const auto accumulation = *rc::gen::inRange<std::int64_t>(1, 6);
  const Layout layout = draw_layout();
  const Actions right = step_actions(accumulation, layout);
  const auto i = *rc::gen::inRange<std::size_t>(0, right.size()),
             j = *rc::gen::inRange<std::size_t>(0, right.size());
  Actions wrong = right;
  wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
  RC_ASSERT(label_of(wrong, accumulation, layout).find("layout_c") == 0);
  wrong = right;
  wrong.insert(wrong.begin() + static_cast<std::ptrdiff_t>(j), right[i]);
  RC_ASSERT(label_of(wrong, accumulation, layout).find("layout_c") == 0);
  wrong = right;
  std::swap(wrong[i], wrong[j]);
  // A swap keeps the rules when all but forwards and backwards stay where they were, no backward passes its
  // forward, and a backward that its reduce_scatter follows stays as well.
  const auto position = [&](ActionKind kind, std::int64_t m) {
    return std::find(wrong.begin(), wrong.end(), Action{kind, m}) - wrong.begin();
  };
  bool kept = true;
  for (std::size_t k = 0; k < right.size(); ++k) {
    const bool free = right[k].kind == forward || (right[k].kind == backward && !layout.shards_weights());
    const bool free_now = wrong[k].kind == forward || (wrong[k].kind == backward && !layout.shards_weights());
    kept = kept && (wrong[k] == right[k] || (free && free_now));
  }
  for (std::int64_t m = 0; m < accumulation; ++m) kept = kept && position(forward, m) < position(backward, m);
  RC_ASSERT((label_of(wrong, accumulation, layout) == "accepted") == kept);
}

}  // namespace
}  // namespace assay::spec::actions_test
