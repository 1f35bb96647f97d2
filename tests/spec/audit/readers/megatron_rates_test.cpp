// labels: unit
// Rates, lengths and memory that Megatron's descendants print beside its own numbers: each is held against
// the others of its line, without any setting.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::megatron_rates_test {
namespace {

RunRecord read(const std::string& text) {
  std::istringstream in(text);
  return read_log(in, "run.log");
}

Verdict verdict(std::string_view id, const std::string& text) { return judge(id, read(text)).verdict; }

template <typename... Numbers>
std::string formatted(const char* form, Numbers... numbers) {
  char text[900];
  std::snprintf(text, sizeof text, form, numbers...);
  return text;
}

/// Megatron-DeepSpeed's lines of 64 sequences of 2,048 tokens on 16 GPUs.
struct DeepSpeed {
  double rate_factor = 1, gpu_factor = 1, tokens_added = 0, length = 2048;
  int wrong = 3;  ///< the line that the factors are of; -1: all
  bool seqlen = true, tgs = true, grows = false;

  std::string log() const {
    std::string out;
    double tokens = 0;
    for (int i = 1; i <= 8; ++i) {
      const double seconds = 3.1 + 0.01 * (i % 3), now = grows ? length / 8 * i : length;
      const bool is_wrong = i == wrong || wrong < 0;
      tokens += 64 * now;
      out += formatted(
          " iteration %8d/%8d | consumed samples: %12d | consumed tokens: %14.0f | elapsed time per "
          "iteration (ms): "
          "%.1f | learning rate: 3.000E-04 | global batch size:    64 | lm loss: 4.%d21930E+00 | ",
          i, 1000, 64 * i, tokens + (is_wrong ? tokens_added : 0), 1000 * seconds, 9 - i);
      if (seqlen) out += formatted("actual seqlen: %5.0f | ", now);
      out += formatted(
          "number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: %.3f | ",
          64 / seconds * (is_wrong ? rate_factor : 1));
      if (tgs)
        out += formatted("tokens per gpu per second (tgs): %.3f | ",
                         64 * now / seconds / 16 * (is_wrong ? gpu_factor : 1));
      out += "TFLOPs: 75.12 |\n";
    }
    return out;
  }
};

TEST(MegatronRatesSpec, LinesThatAgreeSayLengthAndGpus) {
  for (const bool seqlen : {true, false}) {
    DeepSpeed run;
    run.seqlen = seqlen;
    const RunRecord record = read(run.log());
    EXPECT_EQ(contradictions(record), "");
    ASSERT_TRUE(record[Setting::sequence_length] && record[Setting::gpus]);
    EXPECT_EQ(record[Setting::sequence_length]->value, 2048);
    EXPECT_EQ(record[Setting::gpus]->value, 16);
    for (const char* id : {"sequences_rate", "rate_time", "tokens_total"})
      EXPECT_EQ(judge(id, record).verdict, Verdict::holds) << id;
    EXPECT_EQ(judge("sequences_rate", record).judged, 8);
  }
}

TEST(MegatronRatesSpec, SequencesPerSecondAreHeldToTimeAndBatch) {
  DeepSpeed run;
  run.rate_factor = 2;
  EXPECT_EQ(verdict("sequences_rate", run.log()), Verdict::contradicts);
  run.wrong = -1;
  EXPECT_EQ(verdict("sequences_rate", run.log()), Verdict::contradicts);
  run.rate_factor = 1.001;
  EXPECT_EQ(verdict("sequences_rate", run.log()), Verdict::contradicts);
}

TEST(MegatronRatesSpec, TokensPerSecondOfAGpuAreHeldToTheOtherLines) {
  DeepSpeed run;
  run.gpu_factor = 2;
  EXPECT_EQ(verdict("rate_time", run.log()), Verdict::contradicts);
}

TEST(MegatronRatesSpec, ConsumedTokensAreHeldToTheLengthOfTheLines) {
  DeepSpeed run;
  run.tokens_added = 1e7;
  EXPECT_EQ(verdict("tokens_total", run.log()), Verdict::contradicts);
  run.seqlen = run.tgs = false;
  EXPECT_EQ(verdict("tokens_total", run.log()), Verdict::contradicts);
}

/// A curriculum: the length grows from line to line.
TEST(MegatronRatesSpec, LengthsThatGrowAreOfNoOneNumber) {
  DeepSpeed run;
  run.grows = true;
  const RunRecord record = read(run.log());
  EXPECT_EQ(contradictions(record), "");
  EXPECT_FALSE(record[Setting::sequence_length]);
  EXPECT_EQ(judge("rate_time", record).verdict, Verdict::holds);
  run.gpu_factor = 2;
  EXPECT_EQ(verdict("rate_time", run.log()), Verdict::contradicts);
  // Up to the one that the arguments state.
  run.gpu_factor = 1;
  const RunRecord stated = read("  seq_length ...................................... 2048\n" + run.log());
  EXPECT_EQ(contradictions(stated), "");
  EXPECT_FALSE(stated[Setting::sequence_length]);
}

/// Nothing on a GPU's rate without the number of GPUs.
TEST(MegatronRatesSpec, ARateOfOneGpuSaysNothingWhereGpusAreUnknown) {
  std::string log;
  for (int i = 1; i <= 4; ++i)
    log += formatted(
        " [2026-04-28 14:23:%02d.123456] iteration %8d/     500 | consumed samples: %12d | elapsed time per "
        "iteration "
        "(ms): 892.1 | throughput per GPU (TFLOP/s/GPU): 245.3 | tokens/sec/GPU: 73461 | learning rate: "
        "3.0E-04 | "
        "global batch size:   256 | lm loss: 3.2145%dE+00 |\n",
        i, i, 256 * i, i);
  const RunRecord record = read(log + "(seq_length 4096)\n");
  ASSERT_TRUE(record.steps.front()[Field::tokens_per_second]);
  EXPECT_EQ(record.steps.front()[Field::tokens_per_second]->value, 73461);
  RunRecord stated = record;
  stated.state(Setting::sequence_length, exactly(4096, 0), "--seq 4096");
  EXPECT_EQ(judge("rate_time", stated).verdict, Verdict::cannot_be_judged);
  stated.state(Setting::gpus, exactly(16, 0), "--gpus 16");
  EXPECT_EQ(judge("rate_time", stated).verdict, Verdict::holds);
  stated.state(Setting::gpus, exactly(8, 0), "--gpus 8");
  EXPECT_EQ(judge("rate_time", stated).verdict, Verdict::contradicts);
}

struct Primus {
  int ranks = 8, planned = 5000, first = 4408, lines = 4;
  double length = 8192, batch = 128, rate_factor = 1, share = 60.09;

  std::string log() const {
    std::string out;
    for (int i = 0; i < lines; ++i) {
      const double seconds = 13.1 + 0.1 * i, rate = length * batch / seconds / ranks;
      out += formatted(
          "[20251202 06:56:%02d][rank-%d/%d][INFO ] [--------trainer.py:2560] : iteration %d/ %d | consumed "
          "samples: "
          "%.0f | elapsed time per iteration (ms): %.1f/13240.9 | hip mem usage/free/total/usage_ratio: "
          "153.81GB/102.17GB/255.98GB/%.2f%% | throughput per GPU (TFLOP/s/GPU): 579.4/573.6 | tokens per "
          "GPU "
          "(tokens/s/GPU): %.1f/9903.7 | learning rate: 3.421949E-07 | global batch size: %.0f | lm loss: "
          "4.142716E-0%d | loss scale: 1.0 | number of skipped iterations: 0 | number of nan iterations: 0 "
          "|\n",
          14 * i, ranks - 1, ranks, first + i, planned, batch * (first + i), 1000 * seconds, share,
          rate * (i == 2 ? rate_factor : 1), batch, i + 1);
    }
    return out;
  }
};

TEST(MegatronRatesSpec, PrimusRanksRatesAndMemoryAreRead) {
  Primus run;
  const RunRecord record = read(run.log());
  EXPECT_EQ(contradictions(record), "");
  ASSERT_TRUE(record[Setting::sequence_length] && record[Setting::gpus] && record[Setting::gpu_memory]);
  EXPECT_EQ(record[Setting::gpus]->value, 8);
  EXPECT_EQ(record[Setting::sequence_length]->value, 8192);
  EXPECT_DOUBLE_EQ(record[Setting::gpu_memory]->value, 255.98 * 0x1p30);
  EXPECT_EQ(judge("rate_time", record).verdict, Verdict::holds);
  EXPECT_EQ(judge("memory_share", record).judged, 4);
  run.rate_factor = 1.5;
  EXPECT_EQ(verdict("rate_time", run.log()), Verdict::contradicts);
  run.rate_factor = 1, run.share = 70.09;
  EXPECT_EQ(verdict("memory_share", run.log()), Verdict::contradicts);
}

/// Two runs of different sizes in one file, without a header: neither is held to the other's.
TEST(MegatronRatesSpec, ARunOfOtherSizeBehindAnotherIsNotHeldToIt) {
  Primus first, second;
  first.ranks = 32, first.planned = 36000, first.first = 12125, first.length = 4096, first.batch = 256;
  first.lines = second.lines = 1;
  second.first = 126;
  std::istringstream in(first.log() + second.log());
  for (const RunRecord& run : read_logs(in, "run.log")) {
    EXPECT_EQ(contradictions(run), "");
    EXPECT_FALSE(run[Setting::gpus] || run[Setting::sequence_length]);
  }
}

/// A line that was cut within the file: the number at its end may be too, where other lines end in a bar.
TEST(MegatronRatesSpec, ANumberAtTheCutEndOfALineIsNotRead) {
  const auto line = [](int i, const char* end) {
    return formatted(
        " iteration %8d/  250000 | consumed samples: %12d | elapsed time per iteration (ms): 86545.2 | "
        "learning rate: "
        "9.150E-06 | global batch size:  1024 | lm loss: %s\n",
        i, 1024 * i, end);
  };
  const std::string whole = line(1, "2.504220E+00 |") + line(2, "2.493043E+00 |");
  for (const char* cut : {"2", "2.4", "2.477393E"}) {
    const RunRecord record = read(whole + line(3, cut) + line(4, "2.462811E+00 |"));
    EXPECT_EQ(record.unread_lines, 1) << cut;
    EXPECT_EQ(record.steps.size(), 3u);
  }
  // What follows the last bar is no number of the step, or no line has one at its end.
  EXPECT_EQ(read(whole + line(3, "2.477393E+00 | (rank 0)")).steps.size(), 3u);
  EXPECT_EQ(read(line(1, "2.504220E+00") + line(2, "2.493043E+00")).unread_lines, 0);
}

/// GPT-NeoX prints its rate before the number of the step, others behind a time.
TEST(MegatronRatesSpec, SamplesPerSecondElsewhereInTheLineAreRead) {
  const auto log = [](const char* rate) {
    std::string out;
    for (int i = 1; i <= 2; ++i)
      out += formatted(
          " samples/sec: %s | iteration %8d/  320000 | elapsed time per iteration (ms): 1000.0 | learning "
          "rate: "
          "6.0E-05 | global batch size:    32 | lm loss: 5.1%dE+00 |\n",
          rate, 10 * i, i);
    return out;
  };
  EXPECT_EQ(verdict("sequences_rate", log("32.000")), Verdict::holds);
  EXPECT_EQ(verdict("sequences_rate", log("33.000")), Verdict::contradicts);
  const auto behind_time = [](const char* rate) {
    return formatted(
        " [2024-08-21 10:19:42] iteration        4/   25000 | consumed samples:         4096 | elapsed time "
        "per "
        "iteration (ms): 270125.4 | iteration time: 270.125 s samples/sec: %s | learning rate: 7.5E-08 | "
        "global batch "
        "size:  1024 | lm loss: 2.120380E+00 |\n",
        rate);
  };
  EXPECT_EQ(verdict("sequences_rate", behind_time("3.8")), Verdict::holds);
  EXPECT_EQ(verdict("sequences_rate", behind_time("4.8")), Verdict::contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::megatron_rates_test
