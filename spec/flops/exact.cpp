#include "spec/flops/exact.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::spec {

namespace {
void check_length(std::int64_t sequence_length) {
  // flops_c1
  require(sequence_length >= 1, "flops_c1",
          [&] { return "sequence_length=" + std::to_string(sequence_length); });
}
}  // namespace

std::string_view to_string(FlopComponent component) {
  constexpr std::array<std::string_view, flop_components> names = {
      "embedding", "qkv", "attention_scores", "attention_values", "attention_output", "gate_up",
      "down",      "head"};
  return names[static_cast<std::size_t>(component)];
}

std::string_view to_string(Pass pass) { return pass == Pass::forward ? "forward" : "backward"; }

Count FlopBreakdown::of(FlopComponent component) const {
  return at(component, Pass::forward) + at(component, Pass::backward);
}

Count FlopBreakdown::of(Pass pass) const {
  Count sum;
  for (const auto& count : counts) sum += count[static_cast<std::size_t>(pass)];
  return sum;
}

Count FlopBreakdown::per_sequence() const { return of(Pass::forward) + of(Pass::backward); }

Count FlopBreakdown::per_token() const { return per_sequence().divided_exactly_by(sequence_length); }

FlopBreakdown exact_flops(const ModelSpec& m, std::int64_t sequence_length) {
  check(m);
  check_length(sequence_length);
  FlopBreakdown out;
  out.sequence_length = sequence_length;
  const Count T = sequence_length, D = m.width, HE = Count(m.heads) * m.head_dim,
              KE = Count(m.kv_heads) * m.head_dim;
  // Backward is two products of the forward's size, for each of the two factors.
  const auto set = [&](FlopComponent component, Count forward) {
    out.counts[static_cast<std::size_t>(component)] = {forward, 2 * forward};
  };
  const auto linear = [&](Count parameters) { return 2 * T * parameters; };
  const Count pairs = (T * (T + 1)).divided_exactly_by(2);
  set(FlopComponent::qkv, m.layers * linear(D * (HE + 2 * KE)));
  set(FlopComponent::attention_scores, m.layers * (2 * pairs * HE));
  set(FlopComponent::attention_values, m.layers * (2 * pairs * HE));
  set(FlopComponent::attention_output, m.layers * linear(HE * D));
  set(FlopComponent::gate_up, m.layers * linear(2 * D * m.ffn));
  set(FlopComponent::down, m.layers * linear(D * m.ffn));
  set(FlopComponent::head, linear(Count(m.vocab) * D));
  return out;
}

Count exact_flops_per_token(const ModelSpec& m, std::int64_t sequence_length) {
  check(m);
  check_length(sequence_length);
  return 6 * matmul_parameters(m) + 6 * Count(m.layers) * m.heads * m.head_dim * (Count(sequence_length) + 1);
}

Count matmul_parameters(const ModelSpec& m) {
  check(m);
  Count gains = m.layers * (2 * Count(m.width)) + m.width;
  if (m.qk_norm) gains += m.layers * (2 * Count(m.head_dim));
  const Count lookup = m.tied_embeddings ? Count(0) : Count(m.vocab) * m.width;
  return parameter_count(m) - gains - lookup;
}

}  // namespace assay::spec
