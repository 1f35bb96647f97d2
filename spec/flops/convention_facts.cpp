// The table of conventions; what they compute is in conventions.cpp.
#include <algorithm>

#include "spec/flops/conventions.hpp"

namespace assay::spec {

const std::vector<ConventionFacts>& conventions() {
  using enum Convention;
  static const std::vector<ConventionFacts> all = {
      {exact, "exact", "6 P + 6 L H E (T + 1)", "spec/flops/exact.md", "the reference"},
      {palm_total, "palm_total", "6 N + 12 L H E T",
       "PaLM, arXiv:2204.02311, appendix B, N of all parameters", "+ embedding, gains; all pairs"},
      {palm_nonembedding, "palm_nonembedding", "6 (N - tables) + 12 L H E T",
       "PaLM, arXiv:2204.02311, appendix B, N as in arXiv:2001.08361", "+ gains; all pairs; - tied head"},
      {six_n, "6n", "6 N", "arXiv:2203.15556 (Chinchilla), section 3.3: FLOPs(N, D) = 6 N D",
       "- attention; + embedding, gains", false},
      {six_n_nonembedding, "6n_nonembedding", "6 (N - tables - head)",
       "Kaplan et al., arXiv:2001.08361, section 2.1: C = 6 N, table 1", "- attention, head; + gains", false},
      {nanogpt_legacy_v1, "nanogpt_legacy_v1", "6 (N - positions) + 12 L D T",
       "karpathy/nanoGPT@eba36e8 model.py; aaronzhfeng/llm_TII@f514797 v1",
       "+ tables, gains; all pairs; E=D/H"},
      {combined_formula_v2, "combined_formula_v2",
       "3 (L (2 D^2 (2 + 2K/H) + 4 D T + m F + 4 D + 2 n) + n + 2 D V)",
       "aaronzhfeng/llm_TII@f514797 mfu_versions, v2", "+ norms, rope; all pairs; E=D/H"},
      {component_summation_v2025, "component_summation_v2025",
       "3 (L (4 D^2 + 4 D^2 K/H + 4 D T + m F + 2 n) + n + 2 D V)",
       "aaronzhfeng/llm_TII@f514797 mfu_versions, v3", "+ norms; all pairs; E=D/H"},
      {megatron, "megatron", "6 P + 6 L H E T, with multi-token blocks; V padded to 128s; no router",
       "NVIDIA/Megatron-LM@001b00c megatron/training/training.py", "- diagonal, router; + pad, MTP"},
      {torchtitan, "torchtitan", "6 (N - embedding) + 12 L H E T",
       "pytorch/torchtitan@b5bcd76 torchtitan/models/utils.py", "+ gains; all pairs"},
      {kempnerforge, "kempnerforge", "6 P + 12 L D T; experts F wide; no router",
       "KempnerInstitute/KempnerForge@5666d0d kempnerforge/metrics/mfu.py", "all pairs; experts F; - router"},
      {kempnerforge_published, "kempnerforge_published", "6 N + 12 L D T",
       "KempnerForge@5666d0d benchmarks/mfu_scaling/mfu_scaling.md, its table",
       "+ embedding, gains; all pairs"},
      {llmc, "llmc", "6 N + 6 L D T; V padded to 128s",
       "karpathy/llm.c@f1e2ace train_gpt2.cu gpt2_estimate_mfu", "+ tables, gains, biases, padding"},
      {llmq, "llmq", "6 P + 6 L H E T", "IST-DASLab/llmq@b77d969 sol.cpp", "- diagonal's half"},
      {nanochat, "nanochat", "6 (N - embedding) + 12 L D T",
       "karpathy/nanochat@92d63d4 nanochat/gpt.py estimate_flops", "+ gains; all pairs; E=D/H"},
      {surogate, "surogate", "6 (L (D (H + 2K) E + D^2 + 3 D F) + V D) + 6 L H E T",
       "invergent-ai/surogate@524fb77 sol.cpp", "- diagonal's half; output D x D"},
      {nanotron, "nanotron", "6 (L (2 D^2 + 2 D^2 K/H + 3 D F) + V D) + 12 L D T",
       "huggingface/nanotron@2411b02 src/nanotron/models/qwen.py", "all pairs; E=D/H"},
  };
  return all;
}

const ConventionFacts& facts_of(Convention convention) {
  return conventions()[static_cast<std::size_t>(convention)];  // the table is in the enum's order
}

namespace {
bool leaves_pairs_out(const ModelSpec& model, std::int64_t sequence_length) {
  return model.window > 0 && model.window < sequence_length;
}
}  // namespace

std::string formula_of(Convention convention, const ModelSpec& model, std::int64_t sequence_length) {
  if (convention == Convention::exact && leaves_pairs_out(model, sequence_length))
    return "6 P + 6 L H E w (2 T - w + 1) / T";
  return std::string(facts_of(convention).formula);
}

bool counts_outside_window(Convention convention, const ModelSpec& model, std::int64_t sequence_length) {
  return convention != Convention::exact && facts_of(convention).attention &&
         leaves_pairs_out(model, sequence_length);
}

std::string_view to_string(Convention convention) { return facts_of(convention).name; }

std::optional<Convention> convention_from(std::string_view name) {
  const auto found = std::find_if(conventions().begin(), conventions().end(),
                                  [&](const ConventionFacts& facts) { return facts.name == name; });
  if (found == conventions().end()) return std::nullopt;
  return found->convention;
}

}  // namespace assay::spec
