#pragma once
// What a grammar's text costs at best: entropy per sentence and byte, and the exact lowest loss of training
// windows. Derivations with sources: spec/grammar/grammar.md.
#include <cstdint>

#include "spec/grammar/grammar.hpp"

namespace assay::spec::grammar {

struct Entropy {
  double nats_per_sentence;
  double bytes_per_sentence;  ///< expected length, newline included
  double nats_per_byte;       ///< their quotient: the entropy rate of an endless text
};

/// Exact entropies, summed over the choices of the derivation (grammar.md, equations 1 to 3).
Entropy entropy(const Grammar& grammar);

/// Loss of the true distribution on one window: L = (1/T) sum_{t=1..T} -log P(x_t | x_0 .. x_{t-1})
/// [nat/byte].
struct WindowFloor {
  double mean;  ///< E[L]: no model's expected loss is lower, and the true distribution reaches it
  double standard_deviation;  ///< of L over windows: n windows scatter by standard_deviation / sqrt(n)
};

/// Floor of windows made by Grammar::window(seed, sample, T + 1): x_0 is a newline that the model only reads,
/// x_1..x_T are predicted (grammar.md, equations 4 and 5). Tends to Entropy::nats_per_byte as T grows.
/// Errors: SpecError window_floor_c1 (T < 1).
WindowFloor window_floor(const Grammar& grammar, std::int64_t T);

}  // namespace assay::spec::grammar
