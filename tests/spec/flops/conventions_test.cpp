// labels: unit property
#include "spec/flops/conventions.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::conventions_test {
namespace {

using enum Convention;

Count flops(Convention convention, const ModelSpec& model, std::int64_t T) {
  const ConventionCount count = flops_per_token(convention, model, T);
  EXPECT_TRUE(count.flops) << to_string(convention) << " " << count.why_not;
  return count.flops.value_or(Count(0));
}

/// A Llama-like model by its widths, for models that others measured and spec/models does not hold.
ModelSpec llama_like(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t kv_heads,
                     std::int64_t head_dim, std::int64_t ffn, std::int64_t vocab, bool tied) {
  ModelSpec m = find_model("llama3-8b");
  m.layers = layers, m.width = width, m.heads = heads, m.kv_heads = kv_heads, m.head_dim = head_dim;
  m.ffn = ffn, m.vocab = vocab, m.tied_embeddings = tied;
  return m;
}

TEST(ConventionsSpec, TheTableIsWhole) {
  EXPECT_EQ(conventions().size(), 17u);
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
  EXPECT_EQ(flops(six_n, m, T), Count(6 * 853120));
  EXPECT_EQ(flops(six_n_nonembedding, m, T), Count(6 * (853120 - 2 * 32768)));  // the head is untied
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
  EXPECT_EQ(flops(six_n, m, T), Count(6 * N));
  EXPECT_EQ(flops(six_n_nonembedding, m, T), Count(6 * (N - 32768)));  // the one table, which is the head too
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

TEST(ConventionsSpec, Gpt2SmallByHand) {
  const ModelSpec m = find_model("gpt2");
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

TEST(ConventionsSpec, MixtralByHand) {
  const ModelSpec m = find_model("mixtral-8x7b");
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
  ModelSpec m = find_model("mixtral-8x7b");
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

// Megatron-LM@001b00c, transformer_flops(), with DeepSeek-V3's own arguments, term by term.
TEST(ConventionsSpec, MegatronCountsMultiTokenBlocks) {
  const std::int64_t T = 4096, D = 7168;
  const auto by_hand = [&](std::int64_t mtp) {
    const std::int64_t query = 1536 * (D + 128 * 192 + 1),
                       key_value = 512 * (D + 128 * (128 + 128) + 1) + D * 64, output = 128 * 128 * D,
                       pairs = T * 128 * 192 / 2 + T * 128 * 128 / 2,
                       attention = query + key_value + output + pairs, dense = 3 * 18432 * D,
                       sparse = 3 * (8 * 2048 + 2048) * D, projection = 3 * D + 2 * D * D;
    return Count(6) * (Count(61 + mtp) * attention + 3 * dense + (58 + mtp) * Count(sparse) +
                       Count(mtp) * projection + Count(mtp + 1) * D * 129280);
  };
  ModelSpec m = find_model("deepseek-v3");
  EXPECT_EQ(flops(megatron, m, T), by_hand(1));
  EXPECT_NEAR(flops(megatron, m, T).to_double() / 1e9, 260.0, 0.05);
  m.multi_token_layers = 3;
  EXPECT_EQ(flops(megatron, m, T), by_hand(3));
  m.multi_token_layers = 0;
  EXPECT_EQ(flops(megatron, m, T), by_hand(0));
  EXPECT_NEAR(flops(megatron, m, T).to_double() / 1e9, 249.8, 0.05);
  m.multi_token_layers = 1, m.vocab += 1;  // padded by 127 entries, once in each head
  EXPECT_EQ(flops(megatron, m, T), by_hand(1) + 6 * Count(2 * 128) * D);
}

TEST(ConventionsSpec, PaddedVocabulary) {
  ModelSpec m = find_model("qwen3-1.8b");  // 151,643 ids, untied: padded to 151,680 by 37
  EXPECT_EQ(flops(megatron, m, 2048) - flops(llmq, m, 2048), Count(6 * 37 * 2048));
  EXPECT_EQ(flops(llmc, m, 2048),
            6 * (parameter_count(m) + 2 * 37 * Count(2048)) + 6 * Count(24) * 2048 * 2048);
}

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
  ModelSpec full = m;
  full.window = 0;  // a window, which the others do not know, leaves pairs out
  RC_ASSERT(of(exact) <= exact_flops_per_token(full, T));
  RC_ASSERT(exact_flops_per_token(full, T) == of(llmq) + 6 * pairs);  // the diagonal
  RC_ASSERT(of(palm_total) == of(llmq) + 6 * pairs * T + 6 * (N - P));
  RC_ASSERT(of(palm_total) == of(palm_nonembedding) + 6 * Count(m.vocab) * m.width);
  RC_ASSERT(of(megatron) >= of(llmq));
  RC_ASSERT(of(six_n) == 6 * N && of(six_n) + 12 * pairs * T == of(palm_total));
  RC_ASSERT(of(six_n_nonembedding) == 6 * parameter_counts(m).without_embeddings() -
                                          (m.tied_embeddings ? Count(0) : 6 * Count(m.vocab) * m.width));
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
}  // namespace assay::spec::conventions_test
