// labels: unit
// Megatron's arguments as its programs print them: which MLP a block has, and what its schedule goes by.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::megatron_arguments_test {
namespace {

using Arguments = std::map<std::string, std::string>;

/// 24 layers of 2,048 on 8 GPUs, 128 sequences of 2,048; an empty value takes the line away.
std::string header(const Arguments& other) {
  Arguments all = {{"data_parallel_size", "8"},
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
                   {"num_attention_heads", "16"},
                   {"num_experts", "None"},
                   {"num_layers", "24"},
                   {"padded_vocab_size", "50304"},
                   {"pipeline_model_parallel_size", "1"},
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
double cosine(double at, double warmup, double end, double start = 0) {
  if (at <= warmup && warmup > 0) return start + (3e-4 - start) * at / warmup;
  return 3e-5 + 2.7e-4 * (1 + std::cos(std::numbers::pi * (at - warmup) / (end - warmup))) / 2;
}

/// 100 steps; by its number and the samples since the start: the rate. `matrices` of the MLPs of all layers
/// [entries]; nothing of FLOP/s where they are 0.
std::string run(
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

std::string of_mlp(const Arguments& arguments, double matrices) {
  return run(
      arguments, [](double step, double) { return cosine(step, 10, 1000); }, matrices);
}
Verdict of_rate(const std::string& log) {
  return judge("flops_rate_of_batch", tests::read_text(log)).verdict;
}

constexpr double D = 2048, F = 8192;

TEST(MegatronArgumentsSpec, AnMlpIsGatedOnlyWhereSwigluSaysSo) {
  EXPECT_EQ(of_rate(of_mlp({}, 24 * 2 * D * F)), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp({}, 24 * 3 * D * F)), Verdict::contradicts);
  EXPECT_EQ(of_rate(of_mlp({{"swiglu", "True"}}, 24 * 3 * D * F)), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp({{"swiglu", "True"}}, 24 * 2 * D * F)), Verdict::contradicts);
  for (const double matrices : {2.0, 3.0})
    EXPECT_EQ(of_rate(of_mlp({{"swiglu", ""}}, 24 * matrices * D * F)), Verdict::cannot_be_judged);
}

TEST(MegatronArgumentsSpec, ATokenVisitsTheExpertsThatItIsRoutedTo) {
  const Arguments eight = {{"num_experts", "8"}, {"swiglu", "True"}};
  EXPECT_EQ(of_rate(of_mlp(eight, 24 * 2 * 3 * D * F)), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp(eight, 24 * 3 * D * F)), Verdict::contradicts);
  Arguments mixed = eight;
  mixed["moe_ffn_hidden_size"] = "1024";
  mixed["moe_shared_expert_intermediate_size"] = "2048";
  mixed["moe_layer_freq"] = "[0, 1" + [] {
    std::string ones;
    for (int layer = 2; layer < 24; ++layer) ones += ", 1";
    return ones + "]";
  }();
  const double sparse = 3 * D * (2 * 1024 + 2048);
  EXPECT_EQ(of_rate(of_mlp(mixed, 3 * D * F + 23 * sparse)), Verdict::holds);
  // Earlier versions count every layer as sparse, and experts as wide as a dense MLP.
  EXPECT_EQ(of_rate(of_mlp(mixed, 24 * 3 * D * (2 * F + 2048))), Verdict::holds);
  EXPECT_EQ(of_rate(of_mlp(mixed, 24 * 3 * D * F)), Verdict::contradicts);
  mixed["moe_layer_freq"] = "2";
  EXPECT_EQ(of_rate(of_mlp(mixed, 12 * 3 * D * F + 12 * sparse)), Verdict::holds);
}

TEST(MegatronArgumentsSpec, BlocksOfAnotherKindOrOfLostLinesAreNotJudged) {
  for (const Arguments& other : {Arguments{{"multi_latent_attention", "True"}},
                                 {{"squared_relu", "True"}},
                                 {{"num_experts", ""}},
                                 {{"num_experts", "8"}, {"moe_router_topk", ""}},
                                 {{"num_experts", "8"}, {"moe_ffn_hidden_size", ""}},
                                 {{"num_experts", "8"}, {"moe_layer_freq", "[0, 1, 0]"}}})
    EXPECT_EQ(of_rate(of_mlp(other, 24 * 3 * D * F)), Verdict::cannot_be_judged) << other.begin()->first;
  // Versions before experts print none of their lines.
  EXPECT_EQ(of_rate(of_mlp({{"num_experts", ""},
                            {"moe_router_topk", ""},
                            {"moe_ffn_hidden_size", ""},
                            {"moe_layer_freq", ""},
                            {"moe_shared_expert_intermediate_size", ""}},
                           24 * 2 * D * F)),
            Verdict::holds);
}

Verdict of_schedule(const std::string& log) { return judge("learning_rate", tests::read_text(log)).verdict; }

TEST(MegatronArgumentsSpec, AWarmUpIsAShareOfTheDecayWhereOneIsStated) {
  const Arguments share = {{"lr_warmup_iters", "0"}, {"lr_warmup_fraction", "0.02"}};
  const auto rate = [](double warmup) {
    return [warmup](double step, double) { return cosine(step, warmup, 1000); };
  };
  EXPECT_EQ(of_schedule(run(share, rate(20))), Verdict::holds);
  EXPECT_EQ(of_schedule(run(share, rate(40))), Verdict::contradicts);
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "0"}}, rate(20))), Verdict::contradicts);
  // Without the line that may say another one, a warm-up of 0 need not rule.
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "0"}, {"lr_warmup_fraction", ""}}, rate(20))),
            Verdict::holds);
}

TEST(MegatronArgumentsSpec, AWarmUpMayBeginAboveZero) {
  const auto rate = [](double step, double) { return cosine(step, 50, 1000, 3e-5); };
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "50"}, {"lr_warmup_init", "3e-05"}}, rate)), Verdict::holds);
  EXPECT_EQ(of_schedule(run({{"lr_warmup_iters", "50"}}, rate)), Verdict::contradicts);
}

TEST(MegatronArgumentsSpec, AScheduleOfSamplesGoesByThoseSinceTheStart) {
  Arguments by_samples = {{"lr_decay_iters", "None"}, {"lr_decay_samples", "120000"},
                          {"lr_warmup_iters", "0"},   {"lr_warmup_samples", "2000"},
                          {"train_iters", "None"},    {"train_samples", "128000"}};
  const auto rate = [](double, double samples) { return cosine(samples, 2000, 120000); };
  const auto twice = [](double, double samples) { return cosine(samples, 4000, 120000); };
  EXPECT_EQ(of_schedule(run(by_samples, rate)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(by_samples, twice)), Verdict::contradicts);
  // A batch that grows: no number of steps is that of the samples.
  const auto growing = [](int step) { return step < 40 ? 32.0 : step < 70 ? 64.0 : 128.0; };
  by_samples["rampup_batch_size"] = "['32', '32', '6400']";
  EXPECT_EQ(of_schedule(run(by_samples, rate, 0, growing)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(by_samples, twice, 0, growing)), Verdict::contradicts);
  // The decay is as long as the run where none is stated, and a share goes before.
  by_samples["lr_decay_samples"] = by_samples["lr_warmup_samples"] = "None";
  by_samples["lr_warmup_fraction"] = "0.025";
  const auto share = [](double, double samples) { return cosine(samples, 3200, 128000); };
  EXPECT_EQ(of_schedule(run(by_samples, share, 0, growing)), Verdict::holds);
  EXPECT_EQ(of_schedule(run(by_samples, rate, 0, growing)), Verdict::contradicts);
}

TEST(MegatronArgumentsSpec, AStepThatIsLeftOutAgainAfterARestartIsLeftOutOnce) {
  // fp16: step 55 overflows, and once more after the restart from the checkpoint of step 50.
  std::string log =
      run({}, [](double step, double) { return cosine(step >= 55 ? step - 1 : step, 10, 1000); });
  const auto line = [&](int step) {
    char number[32];
    std::snprintf(number, sizeof number, "iteration %8d/", step);
    return log.rfind('\n', log.find(number)) + 1;
  };
  const std::size_t zero = log.find("skipped iterations:   0", line(55));
  log.replace(zero, 23, "skipped iterations:   1");
  const std::string again = log.substr(0, line(61)) + log.substr(line(51));
  EXPECT_EQ(of_schedule(log), Verdict::holds);
  EXPECT_EQ(of_schedule(again), Verdict::holds) << contradictions(tests::read_text(again));
}

}  // namespace
}  // namespace assay::spec::audit::megatron_arguments_test
