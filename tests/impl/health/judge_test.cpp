// labels: unit fault
// When a rank counts as lost, and when not, over rows that are written by hand.
#include "impl/health/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace assay::impl::judge_test {
namespace {

constexpr WatchLimits limits{.silence = 10, .stall = 20, .steps = 5, .outside = 600};
constexpr double look = 0.1;  // [s]

/// Ranks in the middle of step 7 that beat; `turn` changes them ahead of every look.
class Ranks {
 public:
  explicit Ranks(int count) : all_(static_cast<std::size_t>(count)) {
    for (SeenRank& rank : all_) {
      rank.visible = true;
      rank.host = "node0";
      rank.row.doing = Doing::forward;
      rank.row.step = 7, rank.row.steps_done = 6, rank.row.longest_step = 1;
    }
  }
  SeenRank& operator[](std::size_t rank) { return all_[rank]; }

  /// The first finding within `seconds`, and when it came; all ranks beat but those of `silent`.
  std::optional<Found> within(double seconds, const std::vector<std::size_t>& silent = {}) {
    for (passed = 0; passed < seconds; passed += look) {
      for (std::size_t r = 0; r < all_.size(); ++r)
        if (std::find(silent.begin(), silent.end(), r) == silent.end()) ++all_[r].row.beat;
      if (const auto lost = judged_after(look).lost) return lost;
    }
    return {};
  }
  /// All who are slow within `seconds`, and when it was said first; nobody may be lost.
  std::vector<Found> slow_within(double seconds) {
    std::vector<Found> slow;
    first_slow = -1;
    for (passed = 0; passed < seconds; passed += look) {
      for (SeenRank& rank : all_) ++rank.row.beat;
      const Judgement judgement = judged_after(look);
      EXPECT_FALSE(judgement.lost) << "after " << passed << " s";
      for (const Found& each : judgement.slow) {
        if (slow.empty()) first_slow = passed;
        slow.push_back(each);
        seen_[static_cast<std::size_t>(each.rank)].quiet = limits.outside;
      }
    }
    return slow;
  }
  /// The table once the rows have been read again.
  Judgement judged_after(double seconds) {
    seen_.resize(all_.size());
    for (std::size_t r = 0; r < all_.size(); ++r) {
      update(seen_[r], all_[r].row, seconds);
      seen_[r].host = all_[r].host, seen_[r].visible = all_[r].visible, seen_[r].gone = all_[r].gone;
    }
    return judge(seen_, limits);
  }

  double passed = 0, first_slow = -1;

 private:
  RankTable all_, seen_;  ///< as the rows are, and as they were read
};

TEST(JudgeImpl, ARankWhoseProcessIsGoneIsFoundAtOnce) {
  Ranks ranks(3);
  EXPECT_FALSE(ranks.within(1));
  ranks[2].gone = true;
  const auto finding = ranks.within(1);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 2);
  EXPECT_EQ(finding->what, Finding::died);
  EXPECT_LE(ranks.passed, look);
}

TEST(JudgeImpl, ARankThatHasLeftIsNotMissed) {
  Ranks ranks(2);
  ranks[1].row.standing = Standing::left;
  ranks[1].gone = true;
  ranks[0].row.doing = Doing::ending;
  EXPECT_FALSE(ranks.within(300, {1}));
}

TEST(JudgeImpl, ARankThatFailedGoesBeforeThoseThatDiedOfIt) {
  Ranks ranks(4);
  ranks[1].gone = true;
  ranks[3].row.standing = Standing::failed;
  std::strcpy(ranks[3].row.reason, "no such file");
  const auto finding = ranks.within(1);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 3);
  EXPECT_NE(finding->text.find("rank 3 (host node0, CPU) failed: no such file"), std::string::npos);
}

TEST(JudgeImpl, SilenceIsFoundAfterItsLimitAndNotBefore) {
  Ranks ranks(3);
  const auto finding = ranks.within(30, {1});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
  EXPECT_EQ(finding->what, Finding::silent);
  EXPECT_NEAR(ranks.passed, limits.silence, 0.5);
}

/// The looker's own process was stopped for an hour, and all the others with it.
TEST(JudgeImpl, TimeInWhichTheLookerStoodStillDoesNotCount) {
  Ranks ranks(3);
  EXPECT_FALSE(ranks.within(1));
  EXPECT_FALSE(ranks.judged_after(3600).lost);
  EXPECT_FALSE(ranks.within(5));
}

TEST(JudgeImpl, WhoWaitsForTheStalledRankIsNotNamed) {
  Ranks ranks(4);
  for (const std::size_t r : {0u, 1u, 3u}) ranks[r].row.waits = true, ranks[r].row.collectives = 9;
  ranks[2].row.collectives = 8;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 2);
  EXPECT_EQ(finding->what, Finding::stalled);
  EXPECT_NEAR(ranks.passed, limits.stall, 0.5);
}

/// Steps of ten seconds: a phase of 20 s is nothing odd.
TEST(JudgeImpl, SlowStepsAreNoStall) {
  Ranks ranks(2);
  ranks[0].row.waits = true;
  ranks[1].row.longest_step = 10;
  EXPECT_FALSE(ranks.within(49));
  const auto finding = ranks.within(10);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
}

/// Where a rank waits for what no rank can hurry, the others wait for it, and one warning says so.
TEST(JudgeImpl, ARankThatWaitsForDataADiskOrATerminalIsSlowAndNotLost) {
  const std::tuple<Outside, Doing, const char*> waits[] = {{Outside::data, Doing::data_wait, "data"},
                                                           {Outside::disk, Doing::checkpoint, "a disk"},
                                                           {Outside::disk, Doing::reduce, "a disk"},
                                                           {Outside::terminal, Doing::other, "its terminal"}};
  for (const auto& [outside, doing, word] : waits) {
    Ranks ranks(3);
    ranks[0].row.waits = ranks[2].row.waits = true;
    ranks[1].row.doing = doing, ranks[1].row.outside = outside;
    const auto slow = ranks.slow_within(limits.outside - 1);
    ASSERT_EQ(slow.size(), 1u) << word;
    EXPECT_EQ(slow[0].rank, 1) << word;
    EXPECT_NEAR(ranks.first_slow, limits.stall, 0.5) << word;
    const std::string text = slow[0].text;
    EXPECT_NE(text.find(std::string("rank 1 (host node0, CPU) has waited for ") + word +
                        " for 20 s; step 7, phase " + to_string(doing)),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("600 s without progress (parallel.stall_seconds)"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto finding = ranks.within(2);
    ASSERT_TRUE(finding) << word;
    EXPECT_EQ(finding->rank, 1) << word;
    EXPECT_EQ(finding->what, Finding::stalled) << word;
    EXPECT_NE(finding->text.find(std::string("has waited for ") + word + " for 600 s"), std::string::npos);
  }
}

/// Reads of 25 s, one after the other: each is progress, and they are no news each.
TEST(JudgeImpl, ASlowRankThatGoesOnIsReportedOnceInAWhile) {
  Ranks ranks(2);
  ranks[0].row.waits = true;
  ranks[1].row.doing = Doing::data_wait, ranks[1].row.outside = Outside::data;
  std::size_t reports = 0;
  for (int read = 0; read < 40; ++read) {
    reports += ranks.slow_within(25).size();
    ++ranks[1].row.progress;
  }
  EXPECT_EQ(reports, 2u) << "in 1000 s, each once in 600";
}

TEST(JudgeImpl, AShortWaitIsNoNews) {
  Ranks ranks(2);
  ranks[0].row.waits = true;
  ranks[1].row.doing = Doing::data_wait, ranks[1].row.outside = Outside::data;
  EXPECT_TRUE(ranks.slow_within(limits.stall - 1).empty());
}

/// The loader's thread reads ahead while the trainer's hangs in a step: that is a stall.
TEST(JudgeImpl, ReadingAheadIsNoExcuse) {
  Ranks ranks(2);
  ranks[0].row.waits = true;
  ranks[1].row.outside = Outside::data;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
  EXPECT_EQ(finding->what, Finding::stalled);
  EXPECT_NEAR(ranks.passed, limits.stall, 0.5);
}

TEST(JudgeImpl, AWaitIsSeenWithTheProgressThatItsEndIs) {
  Row row;
  std::uint64_t before = row.view().progress;
  const auto goes_on = [&] {
    const std::uint64_t now = row.beat().progress;
    return std::exchange(before, now) < now;
  };
  row.beat();
  std::optional<DiskCall> call(std::in_place);
  EXPECT_TRUE(goes_on());
  EXPECT_EQ(row.view().outside, Outside::disk);
  EXPECT_FALSE(goes_on()) << "one call that takes long";
  call.emplace();
  EXPECT_TRUE(goes_on()) << "the next call";
  EXPECT_EQ(row.view().outside, Outside::disk);
  EXPECT_FALSE(goes_on());
  call.reset();
  EXPECT_TRUE(goes_on());
  EXPECT_EQ(row.view().outside, Outside::nothing);
}

/// A save that stands still is a stall like any other, unless a disk takes its time.
TEST(JudgeImpl, ASaveMayTakeAsLongAsItsDiskAlone) {
  Ranks ranks(2);
  ranks[0].row.doing = Doing::checkpoint, ranks[1].row.doing = Doing::checkpoint;
  ranks[0].row.outside = Outside::disk;
  ranks[1].row.waits = true;
  EXPECT_FALSE(ranks.within(500));
  ranks[0].row.outside = Outside::nothing, ++ranks[0].row.progress;
  EXPECT_FALSE(ranks.within(limits.stall - 1));
  const auto finding = ranks.within(2);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 0);
  EXPECT_EQ(finding->what, Finding::stalled);
}

TEST(JudgeImpl, AStartAFirstStepAndAnEndMayTakeLonger) {
  for (const Doing doing : {Doing::starting, Doing::ending}) {
    Ranks ranks(2);
    ranks[1].row.doing = doing;
    ranks[0].row.waits = true;
    EXPECT_FALSE(ranks.within(500)) << to_string(doing);
    EXPECT_TRUE(ranks.within(150)) << to_string(doing);
  }
  Ranks ranks(2);
  ranks[1].row.steps_done = 0;
  ranks[0].row.waits = true;
  EXPECT_FALSE(ranks.within(500));
}

TEST(JudgeImpl, WhereAllWaitTheOneWithTheFewestCollectivesIsNamed) {
  Ranks ranks(3);
  for (std::size_t r = 0; r < 3; ++r) ranks[r].row.waits = true, ranks[r].row.of_step = 5;
  ranks[1].row.of_step = 4;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
  EXPECT_EQ(finding->what, Finding::deadlock);
  // A rank that sees only some of the others cannot decide.
  Ranks blind(3);
  for (std::size_t r = 0; r < 3; ++r) blind[r].row.waits = true;
  blind[2].visible = false;
  EXPECT_FALSE(blind.within(60));
}

/// A GPU's kernel hangs, or a link: the ranks have begun the same collectives, and each waits for its GPU.
TEST(JudgeImpl, WhereAllWaitAtOneCollectiveNobodyIsBlamed) {
  Ranks ranks(4);
  for (std::size_t r = 0; r < 4; ++r) {
    RowView& row = ranks[r].row;
    row.waits = true, row.doing = Doing::reduce;
    row.collectives = 340, row.collective = spec::Collective::reduce_scatter, row.bytes = 4096;
  }
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, no_rank);
  EXPECT_EQ(finding->what, Finding::standstill);
  EXPECT_NEAR(ranks.passed, limits.stall, 0.5);
  const std::string text = finding->text;
  EXPECT_NE(text.find("all 4 ranks wait for each other for 20 s, and none is behind alone: all at step 7, "
                      "phase reduce, last collective 340, reduce-scatter of 4096 bytes; the cause is not "
                      "known: a GPU, a link"),
            std::string::npos)
      << text;
}

/// Two of four hang together, the other two wait for them: which of the two it is stays unknown.
TEST(JudgeImpl, WhereSeveralAreBehindNoneOfThemIsBlamed) {
  Ranks ranks(4);
  for (std::size_t r = 0; r < 4; ++r) {
    RowView& row = ranks[r].row;
    row.waits = true, row.collective = spec::Collective::all_gather, row.bytes = 64;
    row.collectives = row.of_step = r == 1 || r == 3 ? 11 : 12;
  }
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, no_rank);
  const std::string text = finding->text;
  EXPECT_NE(text.find("ranks 1, 3 at step 7, phase forward, last collective 11, all-gather of 64 bytes; "
                      "ranks 0, 2 at step 7, phase forward, last collective 12"),
            std::string::npos)
      << text;
}

/// Four ranks whose GPUs have 12 collectives to do and stand still, after all has gone well.
Ranks ranks_whose_gpus_stand_still() {
  Ranks ranks(4);
  for (std::size_t r = 0; r < 4; ++r) {
    RowView& row = ranks[r].row;
    row.waits = true, row.collectives = 340, row.of_step = 20, row.collective = spec::Collective::all_reduce,
    row.bytes = 64;
    row.given = 12, row.reached = 11;
  }
  return ranks;
}

TEST(JudgeImpl, TheGpuThatHasComeToTheFewestCollectivesIsNamed) {
  Ranks ranks = ranks_whose_gpus_stand_still();
  ranks[2].row.reached = 9;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 2);
  EXPECT_EQ(finding->what, Finding::gpu_behind);
  EXPECT_NEAR(ranks.passed, limits.stall, 0.5);
  const std::string text = finding->text;
  EXPECT_NE(text.find("its GPU has not gone on for 20 s: it has come to 9 of the 12 collectives"),
            std::string::npos)
      << text;
}

/// The queue of a GPU that waits takes no more work: the calls of two hosts stand still, outside of
/// collectives, and one has begun fewer. Neither is to blame.
TEST(JudgeImpl, CallsThatWaitForAGpuAreNoStall) {
  for (const bool hangs : {true, false}) {
    Ranks ranks = ranks_whose_gpus_stand_still();
    ranks[0].row.waits = ranks[3].row.waits = false;
    ranks[3].row.of_step = 18;
    if (hangs) ranks[1].row.reached = 9;
    const auto finding = ranks.within(60);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->rank, hangs ? 1 : no_rank);
    EXPECT_EQ(finding->what, hangs ? Finding::gpu_behind : Finding::standstill);
  }
}

TEST(JudgeImpl, AHostThatStallsWhileItsGpuHasNothingToDoIsNamed) {
  Ranks ranks = ranks_whose_gpus_stand_still();
  RowView& row = ranks[1].row;
  row.waits = false, row.given = row.reached = 9;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
  EXPECT_EQ(finding->what, Finding::stalled);
}

/// The host has left a collective out: its GPU has done what it was given, and that is less.
TEST(JudgeImpl, AGpuThatWasGivenLessIsNotBehind) {
  Ranks ranks = ranks_whose_gpus_stand_still();
  ranks[1].row.given = ranks[1].row.reached = 9;
  ranks[1].row.of_step = 17;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
  EXPECT_EQ(finding->what, Finding::deadlock);
}

/// Hybrid: a save gathers within the shards of rank 0 alone, so that the counts of the whole run differ.
TEST(JudgeImpl, WhatAStepBeginsIsComparedAndNoSaves) {
  for (const std::size_t hangs : {1u, 3u}) {
    std::vector<Row> rows(4);
    for (std::size_t r = 0; r < 4; ++r) {
      const bool saves = r < 2;
      const auto collectives = [&](int count) {
        for (int i = 0; i < count; ++i) rows[r].begin(spec::Collective::all_gather, 64), rows[r].give();
      };
      rows[r].begin_step(7), collectives(12), rows[r].end_step(1), rows[r].end_step(1);
      rows[r].enter(Doing::checkpoint), collectives(saves ? 30 : 0);
      rows[r].begin_step(8), rows[r].enter(Doing::backward), collectives(r == 2 ? 5 : 6);
      rows[r].follow([=] { return (saves ? 42 : 12) + (r == hangs ? 3 : 5); });
      rows[r].wait(true), rows[r].stand(Standing::running);
    }
    Ranks ranks(4);
    for (std::size_t r = 0; r < 4; ++r) ranks[r].row = rows[r].beat();
    const auto finding = ranks.within(60);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->rank, static_cast<int>(hangs));
    EXPECT_EQ(finding->what, Finding::gpu_behind);
    EXPECT_NE(finding->text.find("come to 3 of the 6 collectives"), std::string::npos);
  }
}

/// One that is a step behind is behind, whatever it has begun there.
TEST(JudgeImpl, AnEarlierStepIsFurtherBehind) {
  Ranks ranks(3);
  for (std::size_t r = 0; r < 3; ++r) ranks[r].row.waits = true, ranks[r].row.of_step = 1;
  ranks[1].row.step = 6, ranks[1].row.of_step = 20;
  const auto finding = ranks.within(60);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, 1);
  EXPECT_EQ(finding->what, Finding::deadlock);
}

/// A long step: every host waits for its GPU, and these go on from collective to collective.
TEST(JudgeImpl, AGpuThatGoesOnIsNoStandstill) {
  Row row;
  std::uint32_t reached = 3;
  row.follow([&] { return reached; });
  for (std::uint32_t i = 1; i <= 5; ++i) EXPECT_EQ(row.give(), i);
  const std::uint64_t before = row.beat().progress;
  row.give();
  EXPECT_EQ(row.beat().progress, before) << "given more, come to no more";
  reached = 4;
  EXPECT_GT(row.beat().progress, before);
  EXPECT_EQ(row.view().given, 6);
  EXPECT_EQ(row.view().reached, 4);
}

TEST(JudgeImpl, TheLineOfAStandstillStaysShort) {
  Ranks ranks(4096);
  for (std::size_t r = 0; r < 4096; ++r) {
    ranks[r].row.step = static_cast<std::int64_t>(r % 100);
    ranks[r].row.waits = true;
  }
  const auto finding = ranks.within(30);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->rank, no_rank);
  const std::string& text = finding->text;
  EXPECT_LT(text.size(), 1500u);
  EXPECT_NE(text.find("; 94 more groups of ranks; the cause"), std::string::npos) << text;
}

TEST(JudgeImpl, TheLineSaysWhereTheRankWas) {
  RowView row;
  row.step = 12, row.doing = Doing::backward, row.collective = spec::Collective::all_reduce;
  row.collectives = 340, row.bytes = 4096;
  std::strcpy(row.gpu, "GPU-1");
  RankTable table(6);
  table[5].row = row, table[5].host = "node3", table[5].visible = true;
  table[5].silent = 10.2;
  const auto finding = judge(table, limits).lost;
  ASSERT_TRUE(finding);
  const std::string& text = finding->text;
  EXPECT_NE(text.find("rank 5 (host node3, GPU-1) gives no sign of life for 10 s"), std::string::npos)
      << text;
  EXPECT_NE(text.find("step 12, phase backward, last collective 340, all-reduce of 4096 bytes"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace assay::impl::judge_test
