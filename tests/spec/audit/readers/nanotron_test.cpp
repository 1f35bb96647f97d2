// labels: unit
// nanotron's lines: what their batch counts, how they are rounded, and that each number is held against the
// others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::nanotron_test {
namespace {

/// Three significant digits and a prefix, without zeros at the end, as nanotron writes numbers for people.
std::string human(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g", number);
  double rounded = std::stod(text);
  int prefix = 0;
  while (std::abs(rounded) >= 1000) rounded /= 1000, ++prefix;
  std::snprintf(text, sizeof text, "%f", rounded);
  std::string out = text;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return prefix > 0 ? out + " KMGTP"[prefix] : out;
}

struct Printer {
  double length = 2048, sequences = 512, gpus = 64, first = 1, steps = 12;
  bool batch_in_tokens = false, configuration = false;
  double micro = 2, accumulation = 4, pipeline = 1, tensor = 1;
  double rate_factor = 1, total_factor = 1, batch_factor = 1, time_factor = 1;
  double gpu_rate_factor = 1, hardware = 1;
  double same_rates = 0;  ///< both rates are this share of all GPUs'

  std::string log() const {
    const double ranks = gpus / pipeline / tensor;
    std::string out;
    if (configuration)
      out +=
          "01/17/2024 13:46:01 [INFO|DP=0|PP=0|TP=0|ip-26-0-160-225]: "
          "Config(general=GeneralArgs(project='debug',\n"
          "                           seed=42),\n"
          "       parallelism=ParallelismArgs(dp=" +
          human(ranks) +
          ",\n"
          "                                   pp=" +
          human(pipeline) +
          ",\n"
          "                                   tp=" +
          human(tensor) +
          ",\n"
          "                                   pp_engine=<OneForwardOneBackwardPipelineEngine>),\n"
          "       tokens=TokensArgs(sequence_length=" +
          std::to_string(static_cast<int>(length)) +
          ",\n"
          "                         train_steps=1000,\n"
          "                         micro_batch_size=" +
          human(micro) +
          ",\n"
          "                         batch_accumulation_per_replica=" +
          human(accumulation) + "))\n";
    for (double i = first; i < first + steps; ++i) {
      const double seconds = 1.7 + 0.013 * std::sin(i), tokens = sequences * length, rate = tokens / seconds;
      out += "01/17/2024 13:47:27 [INFO|DP=0|PP=0|TP=0|ip-26-0-160-225]: iteration: " +
             std::to_string(static_cast<int>(i)) +
             " / 1000 | consumed_tokens: " + human(i * tokens * total_factor) +
             (batch_in_tokens ? " | time" : " | elapsed_time") +
             "_per_iteration_ms: " + human(seconds * 1e3 * time_factor) +
             " | tokens_per_sec: " + human(rate * (same_rates > 0 ? same_rates : rate_factor)) +
             " | tokens_per_sec_per_gpu: " +
             human(rate * (same_rates > 0 ? same_rates
                                          : rate_factor * (i == first + 3 ? gpu_rate_factor : 1) / gpus)) +
             " | global_batch_size: " + human((batch_in_tokens ? tokens : sequences) * batch_factor) +
             " | lm_loss: " + human(10.6 - 0.1 * std::log(i)) +
             " | lr: 0.0003 | model_tflops_per_gpu: " + human(187 * 1.7 / seconds) +
             " | hardware_tflops_per_gpu: " + human(187 * 1.7 / seconds * hardware) + " | grad_norm: 0.507\n";
    }
    return out;
  }
  RunRecord read() const {
    std::istringstream in(log());
    return read_log(in, "log");
  }
};

TEST(NanotronSpec, HonestLogsHold) {
  for (const double length : {128.0, 1024.0, 2048.0, 4096.0, 8192.0})
    for (const double sequences : {16.0, 96.0, 512.0, 1000.0, 1024.0})
      for (const double first : {1.0, 37.0, 985.0})
        for (const bool in_tokens : {false, true}) {
          const Printer run{length, sequences, 8, first, 12, in_tokens};
          const RunRecord record = run.read();
          EXPECT_EQ(record.format.name, "nanotron");
          EXPECT_EQ(record.unread_lines, 0);
          EXPECT_EQ(contradictions(record), "") << run.log();
          EXPECT_EQ(judge("rate_time", record).verdict, Verdict::holds) << run.log();
          EXPECT_EQ(judge("rate_time", record).judged, 12);
        }
}

TEST(NanotronSpec, TheBatchIsOfSequencesOrOfTokens) {
  Printer run;
  EXPECT_EQ(run.read()[Setting::sequences]->value, 512);
  EXPECT_TRUE(run.read()[Setting::sequence_length]->holds(2048));
  EXPECT_FALSE(run.read()[Setting::tokens_per_step]);
  run.batch_in_tokens = true;
  const RunRecord record = run.read();
  EXPECT_FALSE(record[Setting::sequences]);
  // 1,048,576 is printed as 1.05M, and 1,600,000 as 1.6M: three digits, whatever is shown of them.
  EXPECT_DOUBLE_EQ(record[Setting::tokens_per_step]->low, 1.045e6);
  run.length = 1600, run.sequences = 1000;
  EXPECT_DOUBLE_EQ(run.read()[Setting::tokens_per_step]->low, 1.595e6);
  EXPECT_DOUBLE_EQ(run.read()[Setting::tokens_per_step]->high, 1.605e6);
}

TEST(NanotronSpec, EachNumberIsHeldAgainstTheOthers) {
  for (const bool in_tokens : {false, true}) {
    Printer run;
    run.batch_in_tokens = in_tokens;
    run.total_factor = 0.25;
    EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::contradicts) << in_tokens;
  }
  Printer run;
  run.batch_in_tokens = true;
  run.rate_factor = 1.0 / 64;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
  run.rate_factor = 1, run.batch_factor = 4;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
  run.batch_factor = 1, run.time_factor = 1e-3;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
  // Three percent are more than three digits leave open.
  run.time_factor = 1, run.batch_factor = 1.03;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
}

/// tokens/s of one GPU and of all; what the hardware did and what the model needs.
TEST(NanotronSpec, RatesOfOneGpuAndOfTheHardwareAreHeldAgainstTheOthers) {
  Printer run;
  run.configuration = true;
  EXPECT_EQ(judge("gpu_rate", run.read()).judged, 12);
  EXPECT_EQ(judge("gpu_rate", run.read()).verdict, Verdict::holds);
  run.gpu_rate_factor = 2;
  EXPECT_EQ(judge("gpu_rate", run.read()).verdict, Verdict::contradicts);
  EXPECT_EQ(judge("hfu", run.read()).verdict, Verdict::holds);
  run.hardware = 1.02;  // recomputed activations
  EXPECT_EQ(judge("hfu", run.read()).verdict, Verdict::holds);
  run.hardware = 0.98;
  const Result result = judge("hfu", run.read());
  EXPECT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.contradicted, 12);
  EXPECT_NEAR(result.printed, 0.98, 0.006);
}

/// The first reading of the log, where `gpus` ran by an option; "" where none contradicts.
std::string read_as(const std::string& log, double gpus) {
  std::istringstream in(log);
  RunRecord record = read_log(in, "log");
  record.state(Setting::gpus, exactly(gpus), "--gpus");
  const Audit found = audit(record);
  std::string out;
  for (const Change& change : found.readings.front().changes) out += change.id + ";";
  return out;
}

/// Rate and time of the first line make the length where nothing states it, unless they make none.
TEST(NanotronSpec, SecondsUnderMillisecondsAreToldWhateverTheBatchCounts) {
  for (const bool in_tokens : {false, true})
    for (const double length : {1024.0, 2048.0, 8192.0}) {
      Printer run{length, 512, 16, 1, 12, in_tokens};
      EXPECT_EQ(read_as(run.log(), 16), "");
      run.time_factor = 1e-3;
      EXPECT_EQ(read_as(run.log(), 16), "time_unit;") << run.log();
      EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::holds) << run.log();
    }
}

TEST(NanotronSpec, TokensOfAWrongTotalAreNotTakenForSequences) {
  for (const double factor : {1.0 / 16, 16.0, 2048.0}) {
    Printer run;
    run.batch_in_tokens = true, run.total_factor = factor;
    EXPECT_TRUE(run.read()[Setting::tokens_per_step]) << factor;
    EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::holds) << factor;
    EXPECT_EQ(judge("tokens_total", run.read()).verdict, Verdict::contradicts) << factor;
  }
  // A small total may be what is wrong as well as one GPU's rate; a GPU that ran alone is held by its rate.
  Printer alone{2048, 512, 1};
  alone.total_factor = 0.125;
  EXPECT_EQ(judge("rate_time", alone.read()).verdict, Verdict::holds);
  EXPECT_EQ(judge("tokens_total", alone.read()).verdict, Verdict::contradicts);
}

/// One of both rates is printed under both names.
TEST(NanotronSpec, OneGpusRateAndThatOfAllAreTakenForEachOther) {
  for (const bool in_tokens : {false, true})
    for (const double gpus : {2.0, 16.0}) {
      Printer run{2048, 512, gpus, 1, 12, in_tokens};
      run.same_rates = 1 / gpus;
      EXPECT_EQ(read_as(run.log(), gpus), "rate_of_one_gpu;") << run.log();
      EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
      run.same_rates = 1;
      EXPECT_EQ(read_as(run.log(), gpus), "gpu_rate_of_all;") << run.log();
    }
}

TEST(NanotronSpec, OtherGpusThanStatedAreToldByOnesRate) {
  const Printer run{2048, 512, 16};
  for (const double stated : {8.0, 64.0}) EXPECT_EQ(read_as(run.log(), stated), "gpus_other;");
}

TEST(NanotronSpec, TheConfigurationIsHeldAgainstTheLines) {
  Printer run;
  run.configuration = true;
  RunRecord record = run.read();
  EXPECT_EQ(record[Setting::micro]->value, 2);
  EXPECT_EQ(record[Setting::accumulation]->value, 4);
  EXPECT_EQ(record[Setting::sequence_length]->value, 2048);
  EXPECT_EQ(contradictions(record), "");
  for (const std::string id : {"ranks", "sequences", "rate_time"})
    EXPECT_EQ(judge(id, record).verdict, Verdict::holds) << id;
  run.pipeline = 2, run.tensor = 4, run.accumulation = 32;
  EXPECT_EQ(contradictions(run.read()), "");
  run.accumulation = 16;
  EXPECT_EQ(judge("sequences", run.read()).verdict, Verdict::contradicts);
  run.accumulation = 32, run.rate_factor = 1.0 / 8;
  EXPECT_EQ(judge("rate_time", run.read()).verdict, Verdict::contradicts);
}

TEST(NanotronSpec, ABatchThatGrowsIsOfNoOneSize) {
  Printer run;
  std::string log = run.log();
  run.sequences = 1024, run.first = 13;
  run.total_factor = (12.0 * 512 + 1024) / (13 * 1024);  // about: the totals are not looked at
  std::istringstream in(log + run.log());
  const RunRecord record = read_log(in, "log");
  EXPECT_FALSE(record[Setting::sequences]);
  EXPECT_EQ(contradictions(record), "");
}

}  // namespace
}  // namespace assay::spec::audit::nanotron_test
