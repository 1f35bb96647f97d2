// The table of conventions; what they compute is in conventions.cpp.
#include <algorithm>

#include "spec/flops/conventions.hpp"

namespace assay::spec {

const std::vector<ConventionFacts>& conventions() {
  using enum Convention;
  static const std::vector<ConventionFacts> all = {
      {exact, "exact", "6 P + 6 L H E (T + 1)", "spec/flops/exact.md", "the reference"},
      {palm_total, "palm_total", "6 N + 12 L H E T",
       "PaLM, arXiv:2204.02311, appendix B, with N of all parameters",
       "+ embedding, gains; every pair twice"},
      {palm_nonembedding, "palm_nonembedding", "6 (N - tables) + 12 L H E T",
       "PaLM, arXiv:2204.02311, appendix B; N as in arXiv:2001.08361",
       "+ gains; every pair twice; a tied head is lost"},
      {nanogpt_legacy_v1, "nanogpt_legacy_v1", "6 (N - positions) + 12 L H Q T",
       "karpathy/nanoGPT@eba36e8 model.py estimate_mfu; v1 of aaronzhfeng/llm_TII@f514797 mfu_versions",
       "+ embedding, gains; every pair twice; heads of D / H"},
      {combined_formula_v2, "combined_formula_v2",
       "3 (L (2 D^2 (2 + 2K/H) + 4 D T + m F + 4 D + 2n) + n + 2 D V)",
       "v2 of aaronzhfeng/llm_TII@f514797 mfu_versions", "+ norms, rope; every pair twice; heads of D / H"},
      {component_summation_v2025, "component_summation_v2025",
       "3 (L (4 D^2 + 4 D^2 K/H + 4 D T + m F + 2n) + n + 2 D V)",
       "v3 of aaronzhfeng/llm_TII@f514797 mfu_versions/model_builder_v3.py",
       "+ norms; every pair twice; heads of D / H"},
      {megatron, "megatron", "6 P + 6 L H E T, V padded to a multiple of 128, no router",
       "NVIDIA/Megatron-LM@d98e8a6 megatron/training/training.py num_floating_point_operations",
       "the diagonal pairs less; + padded head; - router"},
      {torchtitan, "torchtitan", "6 (N - embedding) + 12 L H E T",
       "pytorch/torchtitan@b5bcd76 torchtitan/models/utils.py", "+ gains; every pair twice"},
      {kempnerforge, "kempnerforge", "6 P + 12 L D T, experts priced at F, no router",
       "KempnerInstitute/KempnerForge@5666d0d kempnerforge/metrics/mfu.py",
       "every pair twice; experts as wide as F"},
      {kempnerforge_published, "kempnerforge_published", "6 N + 12 L D T",
       "reproduces KempnerInstitute/KempnerForge@5666d0d benchmarks/mfu_scaling/mfu_scaling.md",
       "+ embedding, gains; every pair twice"},
      {llmc, "llmc", "6 N + 6 L D T, V padded to a multiple of 128",
       "karpathy/llm.c@f1e2ace train_gpt2.cu gpt2_estimate_mfu",
       "+ embedding unless tied, positions, gains, biases, padding"},
      {llmq, "llmq", "6 P + 6 L H E T", "IST-DASLab/llmq@b77d969 src/utilities/sol.cpp",
       "the diagonal pairs less"},
      {nanochat, "nanochat", "6 (N - embedding) + 12 L H Q T",
       "karpathy/nanochat@92d63d4 nanochat/gpt.py estimate_flops",
       "+ gains; every pair twice; heads of D / H"},
      {surogate, "surogate", "6 (L (D (H + 2K) E + D^2 + 3 D F) + V D) + 6 L H E T",
       "invergent-ai/surogate@524fb77 sol.cpp", "the diagonal pairs less; output projection of D^2"},
      {nanotron, "nanotron", "6 (L (2 D^2 + 2 D^2 K/H + 3 D F) + V D) + 12 L D T",
       "huggingface/nanotron@2411b02 src/nanotron/models/qwen.py get_flops",
       "every pair twice; heads of D / H"},
  };
  return all;
}

const ConventionFacts& facts_of(Convention convention) {
  return conventions()[static_cast<std::size_t>(convention)];  // the table is in the enum's order
}

std::string_view to_string(Convention convention) { return facts_of(convention).name; }

std::optional<Convention> convention_from(std::string_view name) {
  const auto found = std::find_if(conventions().begin(), conventions().end(),
                                  [&](const ConventionFacts& facts) { return facts.name == name; });
  if (found == conventions().end()) return std::nullopt;
  return found->convention;
}

}  // namespace assay::spec
