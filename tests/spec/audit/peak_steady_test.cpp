// labels: unit
// The peak that MFU and FLOP/s of the lines make where no setting says it: one log has one, or ran on other
// GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/lines_without_settings.hpp"

namespace assay::spec::audit::peak_steady_test {
namespace {

using lines_without_settings::Line;
using lines_without_settings::named;
using lines_without_settings::titan;

/// torchtitan's lines without a header, whose MFUs are `share` times as high from line `from` on.
RunRecord two_peaks(int lines, int from, double share) {
  return titan(
      lines, -1, [](Line&) {}, false, -1, [=](int k, Line& l) { l.mfu *= k >= from ? share : 1; });
}

TEST(WorkSteadySpec, OneLogHasOnePeak) {
  for (const double share : {1.1, 0.9, 0.5}) {
    EXPECT_EQ(named(two_peaks(21, 10, share)), "peak_changes") << share;
    EXPECT_EQ(named(two_peaks(4, 2, share)), "peak_changes") << share;
  }
  const Audit told = audit(two_peaks(21, 11, 1 / 1.1));
  const auto at = std::find_if(told.results.begin(), told.results.end(),
                               [](const Result& r) { return r.id == "work_steady"; });
  ASSERT_EQ(at->causes.size(), 1u);
  EXPECT_NE(at->causes[0].text.find("989"), std::string::npos) << at->causes[0].text;
  EXPECT_NE(at->causes[0].text.find("1087."), std::string::npos) << at->causes[0].text;
  EXPECT_EQ(at->contradicted, 10);
  // Neighbours that are wrong together are no other batch: no batch enters the peak.
  const Audit few = audit(two_peaks(40, 38, 1.1));
  EXPECT_TRUE(few.contradicts);
  // Two digits of an MFU hold 0.2 % of it, and what stays within that is the rounding's.
  EXPECT_EQ(named(two_peaks(21, 10, 1.0002)), "holds");
}

/// torchtitan's lines without a header: up to line `from` on H100, then on B200, or the reverse.
RunRecord other_gpus(int lines, int from, bool slower = false, int until = 1000) {
  return titan(
      lines, -1, [](Line&) {}, false, -1,
      [=](int k, Line& l) {
        const bool b200 = (k >= from && k < until) != slower;
        if (b200) l.rate *= 2.1, l.flops *= 2.1, l.seconds /= 2.1;
        l.mfu = l.flops / (b200 ? 2250e12 : 989e12);
      });
}

std::string note_of(const RunRecord& run, std::string_view id = "work_steady") {
  for (const Result& r : audit(run).results)
    if (r.id == id) return r.note + (r.causes.empty() ? "" : r.causes[0].text);
  return "no such invariant";
}

TEST(WorkSteadySpec, APeakThatChangesForGoodWithTheRateMayBeOfOtherGpus) {
  for (const bool slower : {false, true})
    for (const int from : {1, 2, 5, 10, 15, 18, 19}) {
      const RunRecord run = other_gpus(20, from, slower);
      EXPECT_EQ(contradictions(run), "") << slower << " " << from;
      EXPECT_EQ(named(run), "holds") << slower << " " << from;
      const std::string note = note_of(run);
      EXPECT_NE(note.find("may be of other GPUs"), std::string::npos) << from << " " << note;
      EXPECT_NE(note.find(" of 20 lines"), std::string::npos) << note;
    }
  for (const int from : {1, 2, 3}) EXPECT_EQ(contradictions(other_gpus(4, from)), "") << from;
  // For a while only, and without another rate.
  EXPECT_EQ(named(other_gpus(20, 5, false, 10)), "peak_changes");
  EXPECT_EQ(named(two_peaks(20, 10, 989.0 / 2250)), "peak_changes");
  EXPECT_TRUE(audit(two_peaks(20, 18, 989.0 / 2250)).contradicts);
  EXPECT_TRUE(audit(two_peaks(20, 2, 989.0 / 2250)).contradicts);
  // A line that is slow for a pause changes no rate.
  const RunRecord paused = titan(
      20, -1, [](Line&) {}, false, -1,
      [](int k, Line& l) {
        if (k == 15) l.rate /= 2, l.flops /= 2, l.mfu /= 2, l.seconds *= 2;
        if (k >= 10) l.mfu *= 0.5;
      });
  EXPECT_EQ(named(paused), "peak_changes");
}

TEST(WorkSteadySpec, PeaksAreToldWithTheirLines) {
  const std::string halves = note_of(two_peaks(20, 10, 0.5));
  EXPECT_NE(halves.find(" on 10 of 20 lines, with "), std::string::npos) << halves;
  EXPECT_EQ(halves.find("most"), std::string::npos) << halves;
  const RunRecord each = titan(
      20, -1, [](Line&) {}, false, -1, [](int k, Line& l) { l.mfu *= 1 - 0.03 * k; });
  EXPECT_EQ(named(each), "peak_changes");
  EXPECT_NE(note_of(each).find(" on 1 of 20 lines, with "), std::string::npos) << note_of(each);
}

}  // namespace
}  // namespace assay::spec::audit::peak_steady_test
