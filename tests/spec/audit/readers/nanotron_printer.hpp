#pragma once
// nanotron's console as its trainer prints it, with mistakes of accounting.
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::nanotron_test {

/// Three significant digits and a prefix, without zeros at the end, as nanotron writes numbers for people.
inline std::string human(double number) {
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
  double stated_length = 0;  ///< of the configuration, where it is another
  double same_rates = 0;     ///< both rates are this share of all GPUs'

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
          std::to_string(static_cast<int>(stated_length > 0 ? stated_length : length)) +
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

}  // namespace assay::spec::audit::nanotron_test
