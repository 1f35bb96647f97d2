// labels: unit
// Numbers of single lines against one another where no setting says in which relation they stand, and against
// the stamps of their lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::work_steady_test {
namespace {

/// One line's numbers: 57.9 GFLOP per token, a peak of 989 TFLOP/s, 8,192 tokens of one GPU in a step.
struct Line {
  int step = 0;
  double rate = 0, flops = 0, mfu = 0, seconds = 0;
};
using Change = std::function<void(Line&)>;

template <class... Numbers>
std::string text(const char* form, Numbers... numbers) {
  char out[400];
  std::snprintf(out, sizeof out, form, numbers...);
  return out;
}

Line line_of(int k, int every) {
  Line line;
  line.step = k == 0 && every > 1 ? 1 : (every > 1 ? k * every : k + 1);
  line.rate = k == 0 ? 375 : 7000 + 7 * (k % 5);
  line.flops = 57.9e9 * line.rate;
  line.mfu = line.flops / 989e12;
  line.seconds = 8192 / line.rate;
  return line;
}

RunRecord read(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

/// torchtitan's lines, no header before them; a line every ten steps, stamped by the clock. `each` changes
/// what is run, `change` what the wrong one's line says of it.
RunRecord titan(int lines, int wrong, const Change& change, bool header = false, int pause = -1,
                const std::function<void(int, Line&)>& each = nullptr) {
  std::string log = "As copied to a page:\n";
  double clock = 100;
  const auto stamp = [&] {
    return text("[rank0]:[titan] 2025-06-04 08:%02d:%06.3f", static_cast<int>(clock / 60),
                clock - 60 * static_cast<int>(clock / 60));
  };
  std::string settings = stamp() + " - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n" +
                         stamp() +
                         " - root - INFO - Training starts at step 1, with local batch size 1, global batch "
                         "size 8, sequence length 8192, total steps 1000 (warmup 200)\n";
  if (header) log += settings;
  for (int k = 0; k < lines; ++k) {
    Line line = line_of(k, 10);
    if (each) each(k, line);
    clock += (k == 0 ? 1 : k == 1 ? 9 : 10) * line.seconds + (k == pause ? 60 : 0);
    if (k == wrong) change(line);
    std::string at = stamp();
    at[at.rfind('.')] = ',';
    log +=
        at + text(
                 " - root - INFO - step: %2d  loss: %7.4f  memory: 30.99GiB(32.62%%)  tps: %s  tflops: %.2f  "
                 "mfu: %.2f%%\n",
                 line.step, 12.0 / (1 + 0.1 * k),
                 line.rate < 1000
                     ? text("%.0f", line.rate).c_str()
                     : text("%d,%03d", static_cast<int>(line.rate) / 1000, static_cast<int>(line.rate) % 1000)
                           .c_str(),
                 line.flops / 1e12, 100 * line.mfu);
  }
  return read(log);
}

/// Megatron-LM's lines without its arguments, stamped to the second. The wrong one's step takes `slow` times
/// as long.
RunRecord megatron(int lines, int wrong, const Change& change, bool ramp = false, double slow = 1) {
  std::string log;
  double clock = 0, consumed = 0;
  for (int k = 0; k < lines; ++k) {
    Line line = line_of(k + 1, 1);
    const int batch = ramp && k < lines / 2 ? 64 : 128;
    line.seconds = 5.4 * batch / 128 * (1 + 0.01 * (k % 3));
    line.flops = 240e12 / (1 + 0.01 * (k % 3));
    if (k == wrong) line.seconds *= slow, line.flops /= slow;
    clock += line.seconds, consumed += batch;
    if (k == wrong) change(line);
    log += text(
        " [2024-04-06 03:%02d:%02d] iteration %8d/    9999 | consumed samples: %12.0f | elapsed time per "
        "iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: 1.420000E-05 | "
        "global batch size: %5d | lm loss: 1.8%05dE+00 | loss scale: 1.0 | grad norm: 1.300 |\n",
        static_cast<int>(clock) / 60, static_cast<int>(clock) % 60, 71 + k, 9000 + consumed,
        1000 * line.seconds, line.flops / 1e12, batch, 100 * k);
  }
  return read(log);
}

/// nanotron's lines without its configuration.
RunRecord nanotron(int lines, int wrong, const Change& change, double all_rates = 1) {
  std::string log;
  const auto three = [](double x) {
    return x >= 1e5 ? text("%.0fK", x / 1e3) : x >= 1e4 ? text("%.1fK", x / 1e3) : text("%.2fK", x / 1e3);
  };
  for (int k = 0; k < lines; ++k) {
    Line line = line_of(k + 1, 1);
    line.seconds = 8192 * 8 / (line.rate * 8);
    line.rate *= 8 * all_rates;
    if (k == wrong) change(line);
    log += text(
        "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: %d / 999 | consumed_tokens: %s | "
        "elapsed_time_per_iteration_ms: %s | tokens_per_sec: %s | tokens_per_sec_per_gpu: %s | "
        "global_batch_size: 8 | lm_loss: 5.2%d | lr: 0.00015 | model_tflops_per_gpu: %.0f | "
        "hardware_tflops_per_gpu: %.0f | grad_norm: 2.96\n",
        k + 1, three(65536.0 * (k + 1)).c_str(), three(1000 * line.seconds).c_str(), three(line.rate).c_str(),
        three(line.rate / 8).c_str(), k % 10, line.flops / 1e12, line.flops / 1e12);
  }
  return read(log);
}

/// llm.c's lines without its table: tokens/s are a running mean; the MFU is -100 % of a GPU that it does not
/// know.
RunRecord llmc(int lines, int wrong, const Change& change, bool known_gpu = true) {
  std::string log;
  double mean = 0;
  for (int k = 0; k < lines; ++k) {
    Line line;
    line.step = k + 1;
    line.seconds = 2.49 * (1 + 0.002 * (k % 4));
    const double own = 524288 / line.seconds;
    if (k > 0) mean = 0.95 * mean + 0.05 * own;
    line.rate = k == 0 ? own : mean / (1 - std::pow(0.95, k));
    line.mfu = known_gpu ? 0.403 * 2.49 / line.seconds : -1;
    if (k == wrong) change(line);
    log += text(
        "step %4d/%d | loss %.6f (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | %.2f ms | %.1f%% bf16 MFU | "
        "%.0f tok/s\n",
        line.step, lines, 11.0 - 0.1 * k, 1000 * line.seconds, 100 * line.mfu, line.rate);
  }
  return read(log);
}

std::string named(const RunRecord& run, std::string_view id = "work_steady") {
  for (const Result& r : audit(run).results)
    if (r.id == id)
      return r.verdict != Verdict::contradicts ? std::string(to_string(r.verdict))
             : r.causes.empty()                ? "nothing"
                                : r.causes.front().id + (r.causes.size() > 1 ? " and others" : "");
  return "no such invariant";
}

TEST(WorkSteadySpec, LinesWithoutSettingsHold) {
  const Change none = [](Line&) {};
  for (const int lines : {3, 4, 9, 40}) {
    EXPECT_EQ(named(titan(lines, -1, none)), "holds") << lines;
    EXPECT_EQ(named(megatron(lines, -1, none)), "holds") << lines;
    EXPECT_EQ(named(megatron(lines, -1, none, true)), "holds") << lines;
    EXPECT_EQ(named(nanotron(lines, -1, none)), "holds") << lines;
    EXPECT_EQ(named(llmc(lines + 1, -1, none)), "holds") << lines;
    for (const RunRecord& run : {titan(lines, -1, none), megatron(lines, -1, none, true),
                                 nanotron(lines, -1, none), llmc(lines, -1, none)})
      EXPECT_EQ(contradictions(run), "") << run.format.name << " " << lines;
  }
}

TEST(WorkSteadySpec, OneWrongNumberIsNamed) {
  EXPECT_EQ(named(titan(4, 2, [](Line& l) { l.flops *= 0.75; })), "line_flops_rate");
  EXPECT_EQ(named(titan(4, 2, [](Line& l) { l.mfu *= 0.75; })), "line_mfu");
  EXPECT_EQ(named(titan(4, 2, [](Line& l) { l.rate *= 1.28; })), "line_tokens_per_second");
  EXPECT_EQ(named(nanotron(12, 7, [](Line& l) { l.flops *= 2; })), "line_flops_rate");
  EXPECT_EQ(named(nanotron(12, 7, [](Line& l) { l.seconds *= 2; }), "rate_time"), "line_seconds");
  EXPECT_EQ(named(llmc(10, 4, [](Line& l) { l.rate *= 2; })), "line_tokens_per_second");
  EXPECT_EQ(named(llmc(10, 4, [](Line& l) { l.mfu *= 2; })), "line_mfu");
  // Of two numbers that leave each other, a mean that the next line does not go on from.
  const Change twice = [](Line& l) { l.rate *= 2; };
  EXPECT_EQ(named(llmc(10, 4, twice, false)), "line_tokens_per_second");
}

TEST(WorkSteadySpec, StampsSayWhichOfTwoNumbersIsWrong) {
  EXPECT_EQ(named(megatron(3, 1, [](Line& l) { l.flops *= 1.8; })), "line_flops_rate");
  EXPECT_EQ(named(megatron(3, 1, [](Line& l) { l.seconds /= 2; })), "line_seconds");
  EXPECT_EQ(named(megatron(3, 1, [](Line& l) { l.seconds *= 2; })), "line_seconds");
  // Of a slow step both are unusual: its stamps say alone whether the time is right.
  const auto of_slow_step = [](const Change& change) { return named(megatron(10, 4, change, false, 1.5)); };
  EXPECT_EQ(of_slow_step([](Line&) {}), "holds");
  EXPECT_EQ(of_slow_step([](Line& l) { l.seconds *= 4; }), "line_seconds");
  EXPECT_EQ(of_slow_step([](Line& l) { l.flops *= 4; }), "line_flops_rate");
}

/// MFU and tokens/s alone, as torchtitan's first versions print them: no batch says how long a step takes by
/// its rate. The lines' own say it.
TEST(WorkSteadySpec, StampsSayItOfRatesOfAnUnknownBatch) {
  const auto of_slow_steps = [](double slow, const Change& change) {
    RunRecord record = titan(10, 5, change, false, -1, [=](int k, Line& l) {
      if (k == 5) l.seconds *= slow, l.rate /= slow, l.flops /= slow, l.mfu /= slow;
    });
    for (Step& step : record.steps) step[Field::flops_rate].reset();
    return named(record);
  };
  // Steps that are slower by the root of what the wrong number is off by, and faster by it.
  for (const double slow : {std::sqrt(1.3), 1.0, 1 / std::sqrt(1.3)}) {
    EXPECT_EQ(of_slow_steps(slow, [](Line&) {}), "holds") << slow;
    EXPECT_EQ(of_slow_steps(slow, [](Line& l) { l.rate *= 1.3; }), "line_tokens_per_second") << slow;
    EXPECT_EQ(of_slow_steps(slow, [](Line& l) { l.mfu *= 1.3; }), "line_mfu") << slow;
    EXPECT_EQ(of_slow_steps(slow, [](Line& l) { l.mfu /= 1.3; }), "line_mfu") << slow;
  }
  // Steps of twice the batch, as the lines say, take twice as long at the same rates.
  RunRecord record = titan(
      10, 5, [](Line& l) { l.rate *= 2; }, false, -1, [](int k, Line& l) { l.seconds *= k == 5 ? 2 : 1; });
  for (Step& step : record.steps) {
    step[Field::flops_rate].reset();
    step[Field::tokens] = exactly(&step == &record.steps[5] ? 16384 : 8192);
  }
  EXPECT_EQ(named(record), "line_tokens_per_second");
}

TEST(WorkSteadySpec, AnotherRunsLinesAreNoWrongOnes) {
  // The last of a few may be of another run, and so are many that agree among themselves.
  EXPECT_EQ(named(titan(4, 3, [](Line& l) { l.flops *= 0.75; })), "holds");
  EXPECT_NE(named(megatron(3, 0, [](Line& l) { l.flops *= 1.8; })), "line_flops_rate");
}

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

TEST(WorkSteadySpec, WhereSettingsSayItTheyStandForIt) {
  const RunRecord run = nanotron(
      12, -1, [](Line&) {}, 2);
  // What the tokens since the start grow by is the batch: twice the rate on every line is told.
  EXPECT_TRUE(audit(run).contradicts);
}

TEST(LineClockSpec, ARateThatItsStampsDenyContradicts) {
  const Change twice = [](Line& l) { l.rate *= 2, l.flops *= 2, l.mfu *= 2; };
  EXPECT_EQ(named(titan(10, -1, twice, true), "line_clock"), "holds");
  EXPECT_EQ(named(titan(10, 5, twice, true), "line_clock"), "line_tokens_per_second");
  // A pause makes a window longer; the rate of a line behind it is that of the others.
  EXPECT_EQ(named(titan(10, -1, twice, true, 5), "line_clock"), "holds");
  EXPECT_EQ(named(titan(10, 5, twice, false), "line_clock"), "cannot be judged");
  EXPECT_EQ(named(megatron(10, 4, [](Line& l) { l.seconds /= 3, l.flops *= 3; }), "line_clock"),
            "line_seconds");
  EXPECT_EQ(named(megatron(10, 4, [](Line& l) { l.seconds *= 3, l.flops /= 3; }), "line_clock"),
            "line_seconds");
  EXPECT_EQ(named(megatron(10, -1, twice), "line_clock"), "holds");
}

}  // namespace
}  // namespace assay::spec::audit::work_steady_test
