#pragma once
// Logs of which the lines of steps are all that is left, as four trainers print them, and what the audit
// names in one.
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::lines_without_settings {

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

inline Line line_of(int k, int every) {
  Line line;
  line.step = k == 0 && every > 1 ? 1 : (every > 1 ? k * every : k + 1);
  line.rate = k == 0 ? 375 : 7000 + 7 * (k % 5);
  line.flops = 57.9e9 * line.rate;
  line.mfu = line.flops / 989e12;
  line.seconds = 8192 / line.rate;
  return line;
}

inline RunRecord read(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

/// torchtitan's lines, no header before them; a line every ten steps, stamped by the clock. `each` changes
/// what is run, `change` what the wrong one's line says of it.
inline RunRecord titan(int lines, int wrong, const Change& change, bool header = false, int pause = -1,
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
inline RunRecord megatron(int lines, int wrong, const Change& change, bool ramp = false, double slow = 1) {
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
inline RunRecord nanotron(int lines, int wrong, const Change& change, double all_rates = 1) {
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
inline RunRecord llmc(int lines, int wrong, const Change& change, bool known_gpu = true) {
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

inline std::string named(const RunRecord& run, std::string_view id = "work_steady") {
  for (const Result& r : audit(run).results)
    if (r.id == id)
      return r.verdict != Verdict::contradicts ? std::string(to_string(r.verdict))
             : r.causes.empty()                ? "nothing"
                                : r.causes.front().id + (r.causes.size() > 1 ? " and others" : "");
  return "no such invariant";
}

}  // namespace assay::spec::audit::lines_without_settings
