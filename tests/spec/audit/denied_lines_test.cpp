// labels: unit
// A part of a log whose numbers are another multiple of what its stamps show than those of the rest.
#include "spec/audit/denied_lines.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <iomanip>
#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::denied_lines_test {
namespace {

using tests::result_of;

struct Line {
  double clock = 2;   ///< since the line before [s]
  double faster = 1;  ///< printed rate over what the clock makes
  bool time = false;  ///< a step time in the place of a rate
};

/// "[titan] 2025-11-03 08:12:19,821 - root - INFO - "
std::string stamp(double seconds) {
  const auto ms = static_cast<long>(std::round(1000 * seconds));
  char out[80];
  std::snprintf(out, sizeof out, "[titan] 2025-11-03 08:%02ld:%02ld,%03ld - root - INFO - ", ms / 60000 % 60,
                ms / 1000 % 60, ms % 1000);
  return out;
}

/// Forty lines of a step each, of 65,536 tokens on 8 GPUs: JSON's of step times, or torchtitan's of rates.
RunRecord lines(const std::function<Line(int)>& line_of) {
  const bool time = line_of(1).time;
  std::ostringstream out;
  out << std::fixed << std::setprecision(4);
  if (!time)
    out << "[titan] - Building 1-D device mesh with ['dp_shard'], [8]\n[titan] - Trainer is initialized with "
           "local batch size 1, global batch size 8, gradient accumulation steps 1, sequence length 8192, "
           "total "
           "steps 200 (warmup 200)\n";
  double clock = 0;
  for (int i = 1; i <= 40; ++i) {
    const Line line = line_of(i);
    // As steps differ: by one part in fifty.
    const double took = line.clock * (1 + 0.01 * std::sin(7.0 * i)), loss = 10 - 0.05 * i;
    clock += took;
    if (time)
      out << R"({"step": )" << i << R"(, "loss": )" << loss << R"(, "seconds": )" << took / line.faster
          << R"(, "elapsed": )" << clock << "}\n";
    else
      out << stamp(clock) << "step: " << std::setw(2) << i << "  loss: " << loss
          << "  grad_norm:  1.5000  memory: 41.30GiB(52.21%)  tps: " << std::lround(8192 / took * line.faster)
          << "\n";
  }
  return tests::read_text(out.str(), time ? "tokens_per_step=65536,gpus=8" : "");
}

double corrected(const Audit& audit) {
  const auto& rate = audit.readings.front().corrected.tokens_per_second;
  return rate ? rate->middle() : 0;
}

TEST(DeniedLinesSpec, PartOfTheLinesAtTwiceTheRateIsToldFromTheRest) {
  for (const bool time : {false, true})
    for (const double faster : {2.0, 0.5, 1.5})
      for (const auto& [from, to] : {std::pair(10, 40), std::pair(30, 40), std::pair(15, 25)}) {
        const auto log = lines([&, first = from, last = to](int i) {
          return Line{2, i > first && i <= last ? faster : 1, time};
        });
        const Audit told = audit(log);
        const Result& clock = result_of(told, "line_clock");
        ASSERT_EQ(clock.verdict, Verdict::contradicts) << faster << " from " << from;
        EXPECT_EQ(clock.contradicted, to - from);
        EXPECT_NEAR(clock.off_by, 1 / faster, 0.01);
        EXPECT_EQ(clock.causes.front().id, time ? "line_seconds" : "line_tokens_per_second");
        EXPECT_NE(clock.causes.front().text.find(std::to_string(to - from) + " lines is about "),
                  std::string::npos)
            << clock.causes.front().text;
        // The speed is that of the lines that the stamps confirm, however few.
        EXPECT_NEAR(corrected(told) / 32768, 1, 0.02) << faster << " from " << from;
      }
}

/// Neighbours do not excuse one another, nor does a pause behind one of several.
TEST(DeniedLinesSpec, TwoLinesAtTwiceTheRateAreTold) {
  for (const bool time : {false, true})
    for (const double faster : {2.0, 0.5}) {
      const auto told = [&](const std::function<bool(int)>& wrong, int paused) {
        return judge("line_clock", lines([&](int i) {
                       return Line{i == paused ? 3.0 : 2.0, wrong(i) ? faster : 1, time};
                     }));
      };
      EXPECT_EQ(told([](int i) { return i == 20 || i == 21; }, 0).contradicted, 2) << faster;
      EXPECT_EQ(told([](int i) { return i == 20 || i == 21 || i == 30; }, 30).contradicted, 3) << faster;
      EXPECT_EQ(told([](int i) { return i == 20; }, 0).contradicted, 1) << faster;
    }
}

/// Pauses that begin some way down make the stamps wider apart; faster steps bring them closer.
TEST(DeniedLinesSpec, PausesAndFasterStepsAreNoOtherNumbers) {
  const auto held = [](const std::function<Line(int)>& line_of) {
    return judge("line_clock", lines(line_of)).verdict;
  };
  for (const bool time : {false, true}) {
    // An evaluation behind every step from the twentieth on, or behind every third.
    EXPECT_NE(held([&](int i) {
                return i > 20 ? Line{4, 2, time} : Line{2, 1, time};
              }),
              Verdict::contradicts);
    EXPECT_NE(held([&](int i) {
                return i % 3 == 0 ? Line{4, 2, time} : Line{2, 1, time};
              }),
              Verdict::contradicts);
    // Steps of half the time.
    EXPECT_EQ(held([&](int i) { return i > 20 ? Line{1, 1, time} : Line{2, 1, time}; }), Verdict::holds);
    // Pauses of different lengths, some of which make up for faster steps.
    EXPECT_NE(held([&](int i) {
                const double took = 1.6 / (1 + i % 4);
                return i > 20 ? Line{2, 2 / took, time} : Line{2, 1, time};
              }),
              Verdict::contradicts);
  }
}

}  // namespace
}  // namespace assay::spec::audit::denied_lines_test
