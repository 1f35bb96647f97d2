// labels: unit property
#include "spec/flops/conventions.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/metrics/metrics.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec {
namespace {

using enum Convention;

Count flops(Convention convention, const ModelSpec& model, std::int64_t T) {
  const ConventionCount count = flops_per_token(convention, model, T);
  EXPECT_TRUE(count.flops) << to_string(convention) << " " << count.why_not;
  return count.flops.value_or(Count(0));
}

double giga(Convention convention, const std::string& model, std::int64_t T) {
  return flops(convention, find_model(model), T).to_double() / 1e9;
}

/// A Llama-like model by its widths, for models that others measured and spec/models does not hold.
ModelSpec llama_like(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t kv_heads,
                     std::int64_t head_dim, std::int64_t ffn, std::int64_t vocab, bool tied) {
  ModelSpec m = find_model("llama3-8b");
  m.layers = layers, m.width = width, m.heads = heads, m.kv_heads = kv_heads, m.head_dim = head_dim;
  m.ffn = ffn, m.vocab = vocab, m.tied_embeddings = tied;
  return m;
}

/// `value` as printed in `digits` digits after the point.
void expect_printed(double value, double printed, int digits) {
  EXPECT_LE(std::abs(value - printed), 0.5000001 * std::pow(10, -digits))
      << value << " printed as " << printed;
}

ModelSpec kempner_13b() { return llama_like(40, 5120, 40, 8, 128, 17920, 128256, false); }
ModelSpec llama3_70b() { return llama_like(80, 8192, 64, 8, 128, 28672, 128256, false); }

TEST(ConventionsSpec, TheTableIsWhole) {
  EXPECT_EQ(conventions().size(), 15u);
  for (const ConventionFacts& facts : conventions()) {
    EXPECT_EQ(facts_of(facts.convention).name, facts.name);  // in the enum's order
    EXPECT_EQ(convention_from(facts.name), facts.convention);
    EXPECT_FALSE(facts.formula.empty() || facts.source.empty() || facts.differs.empty()) << facts.name;
    // A table of 100 columns holds them.
    EXPECT_LE(facts.name.size(), 25u);
    EXPECT_LE(std::max(facts.formula.size(), facts.source.size()), 72u) << facts.name;
    EXPECT_LE(facts.differs.size(), 34u) << facts.name;
  }
  EXPECT_FALSE(convention_from("palm"));
}

// tiny-llama by hand: L 4, D 128, H 4, K 2, E 32, F 384, V 256, T 128; N 853,120, tables 32,768, P 819,200.
TEST(ConventionsSpec, TinyLlamaByHand) {
  const ModelSpec m = find_model("tiny-llama");
  const std::int64_t T = 128, attention = 4LL * 128 * 128;  // L H E T
  EXPECT_EQ(flops(exact, m, T), Count(6 * 819200 + 6 * 4 * 128 * 129));
  EXPECT_EQ(flops(palm_total, m, T), Count(6 * 853120 + 12 * attention));
  EXPECT_EQ(flops(palm_nonembedding, m, T), Count(6 * (853120 - 32768) + 12 * attention));
  EXPECT_EQ(flops(nanogpt_legacy_v1, m, T), Count(6 * 853120 + 12 * attention));
  EXPECT_EQ(flops(megatron, m, T), Count(6 * 819200 + 6 * attention));
  EXPECT_EQ(flops(torchtitan, m, T), Count(6 * (853120 - 32768) + 12 * attention));
  EXPECT_EQ(flops(kempnerforge, m, T), Count(6 * 819200 + 12 * attention));
  EXPECT_EQ(flops(kempnerforge_published, m, T), Count(6 * 853120 + 12 * attention));
  EXPECT_EQ(flops(llmc, m, T), Count(6 * 853120 + 6 * attention));
  EXPECT_EQ(flops(llmq, m, T), Count(6 * 819200 + 6 * attention));
  EXPECT_EQ(flops(nanochat, m, T), Count(6 * (853120 - 32768) + 12 * attention));
  EXPECT_EQ(flops(surogate, m, T), Count(6 * 819200 + 6 * attention));
  EXPECT_EQ(flops(nanotron, m, T), Count(6 * 819200 + 12 * attention));
  // Forward: projections 2 D^2 (2 + 2/2) = 98,304; pairs 4 D T = 65,536; MLP 6 D F = 294,912; norms 192 each;
  // head 65,536.
  const std::int64_t layer = 98304 + 65536 + 294912 + 2 * 192;
  EXPECT_EQ(flops(component_summation_v2025, m, T), Count(3 * (4 * layer + 192 + 65536)));
  EXPECT_EQ(flops(combined_formula_v2, m, T), Count(3 * (4 * (layer + 4 * 128) + 192 + 65536)));
}

// tiny-qwen3: tied, QK-norm, heads twice as wide as D / H: E 64, H E = 256, D = 128, V 256. N 1,017,472;
// gains (2 * 128 + 2 * 64) * 4 + 128 = 1,664; P = N - gains, for the table is the head.
TEST(ConventionsSpec, TinyQwen3TellsHeadWidthsAndTiesApart) {
  const ModelSpec m = find_model("tiny-qwen3");
  const std::int64_t T = 128, N = 1017472, P = N - 1664, wide = 4LL * 256 * T, narrow = 4LL * 128 * T;
  EXPECT_EQ(flops(torchtitan, m, T), Count(6 * N + 12 * wide));
  EXPECT_EQ(flops(palm_nonembedding, m, T), Count(6 * (N - 32768) + 12 * wide));
  EXPECT_EQ(flops(nanogpt_legacy_v1, m, T), Count(6 * N + 12 * narrow));
  EXPECT_EQ(flops(llmq, m, T), Count(6 * P + 6 * wide));
  // The output projection has 256 x 128 entries; surogate counts 128 x 128.
  EXPECT_EQ(flops(surogate, m, T), Count(6 * (P - 4 * 128 * 128) + 6 * wide));
  // nanotron: heads of 32, two of them for keys: q and o 128 x 128, k and v 128 x 64, against 256 and 128
  // columns.
  EXPECT_EQ(flops(nanotron, m, T), Count(6 * (P - 4 * (2 * 128 * 128 + 2 * 128 * 64)) + 12 * narrow));
  for (Convention convention : {kempnerforge, kempnerforge_published}) {
    EXPECT_FALSE(flops_per_token(convention, m, T).flops);
    EXPECT_NE(flops_per_token(convention, m, T).why_not.find("does not apply"), std::string::npos);
  }
}

/// GPT-2 small: 124,439,808 parameters with positions (1024 * 768) and a tied head.
ModelSpec gpt2_small() {
  ModelSpec m = llama_like(12, 768, 12, 12, 64, 3072, 50257, true);
  m.name = "gpt2-small", m.family = Family::gpt2, m.context = 1024;
  m.norm = Norm::layer_norm, m.mlp = Mlp::gelu, m.positions = Positions::learned;
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = true;
  return m;
}

TEST(ConventionsSpec, Gpt2SmallByHand) {
  const ModelSpec m = gpt2_small();
  const std::int64_t T = 1024, N = 124439808, positions = 786432, table = 38597376,
                     all_pairs = 12LL * 12 * 768 * 1024;
  EXPECT_EQ(parameter_count(m), Count(N));
  EXPECT_EQ(flops(palm_total, m, T), Count(6 * N + all_pairs));
  EXPECT_EQ(flops(nanogpt_legacy_v1, m, T), Count(6 * (N - positions) + all_pairs));
  EXPECT_EQ(flops(palm_nonembedding, m, T), Count(6 * (N - positions - table) + all_pairs));
  EXPECT_EQ(flops(torchtitan, m, T), Count(6 * (N - positions) + all_pairs));
  EXPECT_EQ(flops(llmc, m, T),
            Count(6 * 124475904LL + all_pairs / 2));  // llm.c prints num_parameters 124475904
  // Two matrices of 768 x 3072, layer norms of 2 D, no rope: per layer 8 D^2 + 4 D T + 4 D F + 4 D.
  const std::int64_t layer = 8 * 768 * 768 + 4 * 768 * 1024 + 4 * 768 * 3072 + 4 * 768;
  const Count components = Count(3) * (12 * layer + 2 * 768 + 2 * table);
  EXPECT_EQ(flops(component_summation_v2025, m, T), components);
  EXPECT_EQ(flops(combined_formula_v2, m, T), components);
  for (Convention convention : {llmq, surogate, nanotron, kempnerforge, kempnerforge_published})
    EXPECT_FALSE(flops_per_token(convention, m, T).flops) << to_string(convention);
}

TEST(ConventionsPrinted, NanoGpt) {
  // nanoGPT#178, shakespeare_char on one A100: "iter 10: ... time 893.76ms, mfu 16.68%", "number of
  // parameters: 10.65M"; 64 x 256 tokens, 40 accumulation steps (the 5 * 8 of train.py), peak 312.
  ModelSpec m = gpt2_small();
  m.layers = 6, m.width = 384, m.heads = m.kv_heads = 6, m.ffn = 4 * 384, m.vocab = 65, m.context = 256;
  m.qkv_bias = m.output_bias = m.mlp_bias = m.norm_bias = false;
  const ParameterCounts counts = parameter_counts(m);
  expect_printed((counts.total - counts.position_embedding).to_double() / 1e6, 10.65, 2);
  const double rate = 64 * 256 * 40 / 0.89376;
  expect_printed(100 * metrics::mfu(flops(nanogpt_legacy_v1, m, 256).to_double(), rate, 312e12, 1), 16.68, 2);
}

TEST(ConventionsPrinted, Llmc) {
  // A log of train_gpt2cu, d12 on one A100 (312 TFLOP/s), 524,288 tokens a step: 4688.25 ms "28.8% bf16 MFU",
  // then 4187.58 ms "32.2%".
  const double flop = flops(llmc, gpt2_small(), 1024).to_double();
  expect_printed(100 * metrics::mfu(flop, 524288 / 4.68825, 312e12, 1), 28.8, 1);
  expect_printed(100 * metrics::mfu(flop, 524288 / 4.18758, 312e12, 1), 32.2, 1);
}

/// Mixtral 8x7B: 46,702,792,704 parameters, 12,879,925,248 active.
ModelSpec mixtral() {
  ModelSpec m = llama_like(32, 4096, 32, 8, 128, 14336, 32000, false);
  m.name = "mixtral", m.family = Family::mixtral;
  m.experts = Experts{.count = 8, .active = 2, .width = 14336};
  return m;
}

TEST(ConventionsSpec, MixtralByHand) {
  const ModelSpec m = mixtral();
  // A layer: attention 41,943,040, two experts of 176,160,768, router 32,768; head and table 131,072,000.
  const std::int64_t T = 4096, router = 32LL * 32768, table = 131072000,
                     P = 32 * (41943040LL + 2 * 176160768 + 32768) + table, N = P + table + 65 * 4096,
                     all_pairs = 12LL * 32 * 4096 * 4096;
  EXPECT_EQ(active_parameter_count(m), Count(N));
  EXPECT_EQ(flops(palm_total, m, T), Count(6 * N + all_pairs));
  EXPECT_EQ(flops(torchtitan, m, T), Count(6 * (N - table) + all_pairs));
  EXPECT_EQ(flops(megatron, m, T), Count(6 * (P - router) + all_pairs / 2));
  EXPECT_EQ(flops(kempnerforge, m, T), Count(6 * (P - router) + all_pairs));
  for (Convention convention : {nanogpt_legacy_v1, combined_formula_v2, component_summation_v2025, llmc, llmq,
                                nanochat, surogate, nanotron, kempnerforge_published}) {
    const ConventionCount count = flops_per_token(convention, m, T);
    EXPECT_FALSE(count.flops) << to_string(convention);
    EXPECT_EQ(count.why_not, "does not apply: it knows no mixture of experts");
  }
}

TEST(ConventionsSpec, FineGrainedExpertsArePricedAsDenseOnesByKempnerForge) {
  ModelSpec m = mixtral();
  m.ffn = 8192;
  m.experts = Experts{.count = 16, .active = 4, .width = 1024, .shared_width = 2048, .first_dense = 1};
  // 31 sparse layers: four routed and two shared experts, each counted 8192 instead of 1024 wide.
  const std::int64_t T = 4096, mlp = 3LL * 4096, attention = 41943040;
  EXPECT_EQ(
      flops(kempnerforge, m, T),
      Count(6 * (32 * attention + mlp * 8192 + 31 * 6 * mlp * 8192 + 131072000) + 12LL * 32 * 4096 * 4096));
  EXPECT_EQ(flops(torchtitan, m, T) - flops(megatron, m, T),
            6 * (Count(31) * 16 * 4096 + 65 * 4096) +
                Count(6) * 32 * 4096 * 4096);  // router, gains, half the pairs
}

TEST(ConventionsSpec, LatentAttentionByHand) {
  ModelSpec m = llama_like(2, 64, 4, 4, 24, 128, 256, false);
  m.name = "latent", m.family = Family::deepseek_v3;
  m.latent = LatentAttention{.query_rank = 32, .key_value_rank = 16, .rope_dim = 8, .value_dim = 16};
  // A layer: 64*32 + 32*4*24, 64*(16 + 8) + 16*4*(24 - 8 + 16), 4*16*64, and an MLP of 3*64*128.
  const std::int64_t layer = 5120 + 3584 + 4096 + 24576, P = 2 * layer + 256 * 64, T = 32,
                     pairs = 2LL * 4 * (24 + 16) * T;
  EXPECT_EQ(flops(exact, m, T), Count(6 * P + 3 * 2 * 4 * 40 * (T + 1)));
  EXPECT_EQ(flops(megatron, m, T), Count(6 * (P + 2 * (32 + 16)) + 3 * pairs));
  // torchtitan adds the gains: two of 64 and 32 + 16 a layer, a final one.
  EXPECT_EQ(flops(torchtitan, m, T), Count(6 * (P + 2 * (128 + 48) + 64) + 6 * pairs));
}

TEST(ConventionsSpec, PaddedVocabulary) {
  ModelSpec m = find_model("qwen3-1.8b");  // 151,643 ids, untied: padded to 151,680 by 37
  EXPECT_EQ(flops(megatron, m, 2048) - flops(llmq, m, 2048), Count(6 * 37 * 2048));
  EXPECT_EQ(flops(llmc, m, 2048),
            6 * (parameter_count(m) + 2 * 37 * Count(2048)) + 6 * Count(24) * 2048 * 2048);
}

// ---- numbers that the conventions' own projects printed ----

TEST(ConventionsPrinted, FirstReportPalmTotal) {
  // llm_TII docs/35: "FLOPs/token: 8.78 GF (6N+12LHQT: N=1.294B)"; 939.7 TF at 106,979 tokens/s; 938.2 at
  // 106,809.
  const double flop = flops(palm_total, find_model("llama-1.36b"), 2048).to_double();
  expect_printed(flop / 1e9, 8.78, 2);
  expect_printed(flop * 106979 / 1e12, 939.7, 1);
  expect_printed(flop * 106809 / 1e12, 938.2, 1);
  EXPECT_EQ(palm_flops_per_token(1294159104, 18, 18, 128, 2048),
            flops(palm_total, find_model("llama-1.36b"), 2048));
}

TEST(ConventionsPrinted, JsonLogOfTheFirstSystem) {
  // run_20251115_150458.json prints 12182802432 with N = 1,829,140,480; the configuration's shape has 49,152
  // gains more.
  EXPECT_EQ(palm_flops_per_token(1829140480, 24, 16, 128, 2048).to_string(), "12182802432");
  EXPECT_EQ(flops(nanogpt_legacy_v1, find_model("qwen3-1.8b"), 2048), Count(12182802432 + 6 * 49152));
}

TEST(ConventionsPrinted, ThirdReportsVersions) {
  // llm_TII's comparison of its formulas: 10.32 GFLOP per token for the 1.8B by components, and MFU ~52 % by
  // v1 against ~44 % by v2 and v3 of the same run.
  expect_printed(giga(component_summation_v2025, "qwen3-1.8b", 2048), 10.32, 2);
  expect_printed(giga(combined_formula_v2, "qwen3-1.8b", 2048), 10.32, 2);
  EXPECT_NEAR(giga(nanogpt_legacy_v1, "qwen3-1.8b", 2048) / giga(combined_formula_v2, "qwen3-1.8b", 2048),
              52.0 / 44, 0.02);
}

TEST(ConventionsPrinted, Torchtitan) {
  // torchtitan#1884, llama3 8B at 8192: "tps: 5,615 tflops: 325.20 mfu: 32.88%", peak 989.
  const double flop = flops(torchtitan, find_model("llama3-8b"), 8192).to_double();
  EXPECT_NEAR(flop * 5615 / 1e12, 325.20, 325.20 * 0.5 / 5615 + 0.005);  // tokens/s are printed whole
  EXPECT_NEAR(100 * metrics::mfu(flop, 5615, 989e12, 1), 32.88, 0.01);
  expect_printed(flop / 1e9, 57.91, 2);
  // Its Llama 3.1 8B report: 6,667 tokens/s on H100 are 39 %.
  expect_printed(100 * metrics::mfu(flop, 6667, 989e12, 1), 39, 0);
}

TEST(ConventionsPrinted, KempnerForgesTableCountsTheEmbedding) {
  // benchmarks/mfu_scaling/mfu_scaling.md: model, GPUs, tokens/s, MFU printed; the last, what the code at
  // 5666d0d gives.
  struct Row {
    ModelSpec model;
    int gpus;
    double rate, printed, by_code;
  };
  const ModelSpec b7 = find_model("llama3-8b"), b13 = kempner_13b(), b70 = llama3_70b();
  for (const Row& row : std::vector<Row>{{b7, 1, 10471, 57.8, 54.5},
                                         {b7, 2, 18728, 51.7, 48.7},
                                         {b7, 4, 38983, 53.8, 50.7},
                                         {b7, 4, 25135, 34.7, 32.7},
                                         {b7, 8, 44299, 30.6, 28.8},
                                         {b13, 8, 35405, 44.4, 42.6},
                                         {b13, 16, 53814, 33.7, 32.4},
                                         {b7, 32, 155917, 26.9, 25.4},
                                         {b13, 32, 104309, 32.7, 31.4},
                                         {b70, 32, 17657, 25.4, 25.1}}) {
    const auto mfu = [&](Convention convention) {
      return 100 * metrics::mfu(flops(convention, row.model, 4096).to_double(), row.rate, 989e12, row.gpus);
    };
    // Both columns are rounded means over five steps: 44.35 stands as 44.4.
    EXPECT_NEAR(mfu(kempnerforge_published), row.printed, 0.051);
    expect_printed(mfu(kempnerforge), row.by_code, 1);
    EXPECT_GT(std::abs(mfu(kempnerforge) - row.printed), 0.05);  // the code does not give the table
  }
}

TEST(ConventionsPrinted, Megatron) {
  // NVIDIA-NeMo/Megatron-Bridge performance summary, T = 8192: tokens/s/GPU and model TFLOP/s/GPU.
  const std::vector<std::pair<double, double>> rows = {
      {14451, 744}, {30624, 1576}, {29521, 1519}, {31508, 1622}, {37556, 1933}};
  for (const auto& [rate, tflops] : rows)
    EXPECT_NEAR(giga(megatron, "llama3-8b", 8192) * rate / 1e3, tflops, 0.6);
  expect_printed(giga(megatron, "llama3-8b", 8192), 51.47, 2);
  // 70B: 1,602 tokens/s are "719" and 4,312 are "1937".
  EXPECT_NEAR(flops(megatron, llama3_70b(), 8192).to_double() * 1602 / 1e12, 719, 1);
  EXPECT_NEAR(flops(megatron, llama3_70b(), 8192).to_double() * 4312 / 1e12, 1937, 1);
}

TEST(ConventionsPrinted, Llmq) {
  // benchmarks/H100x1.md, Qwen2.5 at T = 1024, bf16: tokens/s to three or four digits and share of the bf16
  // peak.
  struct Row {
    ModelSpec model;
    double rate, printed;
  };
  for (const Row& row :
       std::vector<Row>{{llama_like(24, 896, 14, 2, 64, 4864, 151936, true), 149500, 46.8},
                        {llama_like(28, 1536, 12, 2, 128, 8960, 151936, true), 58900, 56.7},
                        {llama_like(36, 2048, 16, 2, 128, 11008, 151936, true), 30900, 59.3},
                        {llama_like(28, 3584, 28, 4, 128, 18944, 152064, false), 13850, 60.2},
                        {llama_like(48, 5120, 40, 8, 128, 13824, 152064, false), 6330, 54.7}})
    EXPECT_NEAR(100 * metrics::mfu(flops(llmq, row.model, 1024).to_double(), row.rate, 989.4e12, 1),
                row.printed, 0.15);
}

TEST(ConventionsPrinted, Nanochat) {
  // The d20 report card: 560,988,160 parameters, 3.491758e+09 FLOPs per token at T = 2048. Its MLP has two
  // matrices of 4 D and no gains, so the nearest SwiGLU (3 * 3413 against 8 * 1280) differs by known counts.
  const ModelSpec m = llama_like(20, 1280, 10, 10, 128, 3413, 65536, false);
  const std::int64_t gains = 41 * 1280, missing = 20LL * 1280 * (8 * 1280 - 3 * 3413);
  EXPECT_EQ(parameter_count(m), Count(560988160 + gains - missing));
  const Count printed_form = flops(nanochat, m, 2048) + 6 * Count(missing) - 6 * Count(gains);
  EXPECT_EQ(printed_form.to_string(), "3491758080");
}

TEST(ConventionsPrinted, PeersOnTheSameModels) {
  // Figures that this project derived from each trainer's code before this file was written, in GFLOP per
  // token.
  expect_printed(giga(llmq, "llama3-8b", 8192), 51.47, 2);
  for (Convention convention : {torchtitan, kempnerforge, nanotron})
    expect_printed(giga(convention, "llama3-8b", 8192), 57.91, 2);
  expect_printed(giga(kempnerforge_published, "llama3-8b", 8192), 61.07, 2);
  expect_printed(giga(megatron, "qwen3-0.6b", 4096), 4.985, 3);
  expect_printed(giga(torchtitan, "qwen3-0.6b", 4096), 6.395, 3);
  expect_printed(giga(nanotron, "qwen3-0.6b", 4096), 4.457, 3);
  expect_printed(giga(component_summation_v2025, "qwen3-0.6b", 4096), 4.457, 3);
  expect_printed(giga(surogate, "qwen3-0.6b", 4096), 4.809, 3);
}

// ---- what holds for every model ----

TEST(ConventionsSpec, C1RejectsAnEmptySequence) {
  EXPECT_THROW(flops_per_token(torchtitan, find_model("tiny-llama"), 0), SpecError);
  EXPECT_THROW(palm_flops_per_token(0, 1, 1, 1, 1), SpecError);
}

RC_GTEST_PROP(ConventionsSpecProperty, DifferencesAreTheStatedOnes, ()) {
  const ModelSpec m = tests::draw_model();
  const auto T = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto of = [&](Convention convention) { return *flops_per_token(convention, m, T).flops; };
  const Count pairs = Count(m.layers) * m.heads * m.head_dim, N = parameter_count(m),
              P = matmul_parameters(m);
  RC_ASSERT(of(exact) == exact_flops(m, T).per_token());
  RC_ASSERT(of(exact) == of(llmq) + 6 * pairs);  // the diagonal
  RC_ASSERT(of(palm_total) == of(llmq) + 6 * pairs * T + 6 * (N - P));
  RC_ASSERT(of(palm_total) == of(palm_nonembedding) + 6 * Count(m.vocab) * m.width);
  RC_ASSERT(of(megatron) >= of(llmq));
  RC_ASSERT(of(torchtitan) == (m.tied_embeddings ? of(palm_total) : of(palm_nonembedding)));
  RC_ASSERT(of(palm_total) == palm_flops_per_token(N.to_int64(), m.layers, m.heads, m.head_dim, T));
}

RC_GTEST_PROP(ConventionsSpecProperty, ACountOrAReason, ()) {
  const ModelSpec m = tests::draw_model();
  const auto T = *rc::gen::inRange<std::int64_t>(1, 300);
  for (const ConventionFacts& facts : conventions()) {
    const ConventionCount count = flops_per_token(facts.convention, m, T);
    RC_ASSERT(count.flops.has_value() == count.why_not.empty());
    if (count.flops) RC_ASSERT(*count.flops > Count(0));
  }
}

}  // namespace
}  // namespace assay::spec
