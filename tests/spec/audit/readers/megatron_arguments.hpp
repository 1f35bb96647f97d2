#pragma once
// A run of Megatron-LM as it prints its arguments and lines; tests of both change them.
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numbers>
#include <string>

namespace assay::spec::audit::megatron_arguments_test {

using Arguments = std::map<std::string, std::string>;

/// 24 layers of 2,048 on 8 GPUs, 128 sequences of 2,048; an empty value takes the line away.
inline std::string header(const Arguments& other) {
  Arguments all = {{"add_bias_linear", "False"},
                   {"data_parallel_size", "8"},
                   {"ffn_hidden_size", "8192"},
                   {"global_batch_size", "128"},
                   {"group_query_attention", "False"},
                   {"hidden_size", "2048"},
                   {"kv_channels", "128"},
                   {"lr", "0.0003"},
                   {"lr_decay_iters", "1000"},
                   {"lr_decay_samples", "None"},
                   {"lr_decay_style", "cosine"},
                   {"lr_warmup_fraction", "None"},
                   {"lr_warmup_init", "0.0"},
                   {"lr_warmup_iters", "10"},
                   {"lr_warmup_samples", "0"},
                   {"micro_batch_size", "4"},
                   {"min_lr", "3e-05"},
                   {"moe_ffn_hidden_size", "None"},
                   {"moe_layer_freq", "1"},
                   {"moe_router_topk", "2"},
                   {"moe_shared_expert_intermediate_size", "None"},
                   {"multi_latent_attention", "False"},
                   {"normalization", "LayerNorm"},
                   {"num_attention_heads", "16"},
                   {"num_experts", "None"},
                   {"num_layers", "24"},
                   {"padded_vocab_size", "50304"},
                   {"pipeline_model_parallel_size", "1"},
                   {"qk_layernorm", "False"},
                   {"rampup_batch_size", "None"},
                   {"seq_length", "2048"},
                   {"swiglu", "False"},
                   {"tensor_model_parallel_size", "1"},
                   {"train_iters", "1000"},
                   {"train_samples", "None"},
                   {"world_size", "8"}};
  for (const auto& [name, value] : other) all[name] = value;
  std::string out = "------------------------ arguments ------------------------\n";
  for (const auto& [name, value] : all)
    if (!value.empty()) out += "  " + name + " " + std::string(48 - name.size(), '.') + " " + value + "\n";
  return out + "-------------------- end of arguments ---------------------\n";
}

/// Rate of a cosine from 3e-4 to 3e-5 at `at` of `end`, behind a warm-up from `start`.
inline double cosine(double at, double warmup, double end, double start = 0) {
  if (at <= warmup && warmup > 0) return start + (3e-4 - start) * at / warmup;
  return 3e-5 + 2.7e-4 * (1 + std::cos(std::numbers::pi * (at - warmup) / (end - warmup))) / 2;
}

/// 100 steps; by its number and the samples since the start: the rate. `matrices` of the MLPs of all layers
/// [entries]; nothing of FLOP/s where they are 0.
inline std::string run(
    const Arguments& arguments, const std::function<double(double, double)>& rate, double matrices = 0,
    const std::function<double(int)>& batch = [](int) { return 128.0; }) {
  std::string out = header(arguments);
  double samples = 0;
  for (int step = 1; step <= 100; ++step) {
    samples += batch(step);
    const double seconds = 0.7 + 0.001 * (step % 7), L = 24, D = 2048, T = 2048, V = 50304;
    const double flops = 6 * (L * 4 * D * D + matrices + V * D) + 6 * L * D * T;
    char line[512], speed[96] = "";
    if (matrices > 0)
      std::snprintf(speed, sizeof speed, " throughput per GPU (TFLOP/s/GPU): %.1f |",
                    flops * batch(step) * T / seconds / 8 / 1e12);
    std::snprintf(
        line, sizeof line,
        " [2025-03-03 01:00:00] iteration %8d/    1000 | consumed samples: %12.0f | elapsed time per "
        "iteration (ms): %.1f |%s learning rate: %.6E | global batch size: %5.0f | lm loss: %.6E | loss "
        "scale: 1.0 | grad norm: %.3f | number of skipped iterations:   0 | number of nan iterations:   0 "
        "|\n",
        step, samples, seconds * 1e3, speed, rate(step, samples), batch(step), 10.8 - 0.05 * step, 1.25);
    // The stamp's clock is another test's.
    out += std::string(line).substr(23);
  }
  return out;
}

}  // namespace assay::spec::audit::megatron_arguments_test
