// What a simulated run's trainer counts: FLOPs by its convention, tokens and peaks as it documents them.
#include "spec/flops/exact.hpp"
#include "tests/support/simulated/draw.hpp"

namespace assay::tests {

double convention_flops(LogFormat format, const SimulatedRun& run) {
  const spec::ModelSpec& m = run.model;
  const double N = run.parameters, L = static_cast<double>(m.layers), D = static_cast<double>(m.width),
               A = static_cast<double>(m.heads) * static_cast<double>(m.head_dim),
               T = static_cast<double>(run.sequence_length), embedding = static_cast<double>(m.vocab) * D;
  switch (format) {
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
    case LogFormat::nanogpt:
    case LogFormat::build_nanogpt:  // prints none
      return 6 * N + 12 * L * A * T;
    case LogFormat::torchtitan:
      // A tied table is the head's, and counts.
      return 6 * (m.tied_embeddings ? N : N - embedding) + 12 * L * A * T;
    case LogFormat::kempnerforge:
      return 6 * spec::matmul_parameters(m).to_double() + 12 * L * D * T;
    case LogFormat::llmc:
      return 6 * N + 6 * L * D * T;
    case LogFormat::nanotron: {
      const double K = static_cast<double>(m.kv_heads) * D / static_cast<double>(m.heads);
      return 6 * (L * D * (2 * D + 2 * K + 3 * static_cast<double>(m.ffn)) + embedding) + 12 * L * D * T;
    }
    case LogFormat::megatron: {
      // A token's matrices: gate and up, or up alone, and down; of experts, those that it visits.
      const double K = static_cast<double>(m.kv_heads) * static_cast<double>(m.head_dim),
                   matrices = m.mlp == spec::Mlp::gelu ? 2 : 3, F = static_cast<double>(m.ffn);
      double sparse = 0, width = 0;
      if (m.experts) {
        for (std::int64_t l = m.experts->first_dense; l < m.layers; l += m.experts->every) ++sparse;
        width = static_cast<double>(m.experts->active) * static_cast<double>(m.experts->width) +
                static_cast<double>(m.experts->shared_width);
      }
      const double mlps = matrices * D * ((L - sparse) * F + sparse * width);
      return 6 * (L * D * (2 * A + 2 * K) + mlps) + 6 * embedding + 6 * L * A * T;
    }
    case LogFormat::llmq:
    case LogFormat::llmq_json: {
      // Matrices of the blocks and the head; attention over T / 2 keys on average.
      const double K = static_cast<double>(m.kv_heads) * static_cast<double>(m.head_dim);
      const double blocks = L * (D * (2 * A + 2 * K) + 3 * D * static_cast<double>(m.ffn));
      return 6 * blocks + 6 * embedding + 6 * L * A * T;
    }
    default:
      return spec::exact_flops_per_token(m, run.sequence_length).to_double();
  }
}

Accounting documented(const SimulatedRun& run) {
  Accounting a;
  a.peak = run.peak_dense;
  a.flops_per_token = convention_flops(run.format, run);
  a.accumulation = a.accumulation_stated = run.accumulation;
  switch (run.format) {
    case LogFormat::torchtitan:
    case LogFormat::megatron:
      a.rate = a.numerator = a.peak_of = Whose::gpu;
      break;
    case LogFormat::nanogpt:  // one rank against one A100, whatever the GPU
      a.peak = simulated::a100.dense;
      a.numerator = a.peak_of = Whose::gpu;
      break;
    case LogFormat::llmc:
    case LogFormat::nanotron:
      a.numerator = a.peak_of = Whose::gpu;
      break;
    default:
      break;
  }
  return a;
}

}  // namespace assay::tests
