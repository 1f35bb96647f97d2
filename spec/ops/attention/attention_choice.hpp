#pragma once
// Which code computes attention of a shape: one choice for both passes, made before either runs. A run that
// has the libraries asks them; on paper what is known of them answers.
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "spec/tolerance.hpp"

namespace assay::spec {

/// In the order in which they are asked: cuDNN, FlashAttention, loops of our own on a CPU, plain GEMMs.
enum class AttentionBackend { automatic, cudnn, flash, loops, math };
std::string to_string(AttentionBackend backend);  ///< "cudnn"

namespace attention {

/// What a choice depends on.
struct Case {
  Dtype dtype;
  bool gpu = true;  ///< else a CPU
  std::int64_t B, T, H, K, E;
  std::int64_t W = 0;             ///< entries of a value head where they are not E, else 0
  bool documents;                 ///< several in a sequence; a sequence of one token has nothing to mask
  bool offsets;                   ///< of the documents
  std::int64_t window;            ///< that leaves something out, else 0
  std::int64_t S = 0, first = 0;  ///< as of Shape and Mask, where they are not T and 0; else 0
  AttentionBackend asked = AttentionBackend::automatic;
  bool fixed_order;  ///< of backward's sums
  auto operator<=>(const Case&) const = default;
};

/// "attention of [24, 2048, 18 + 2 x 18, 128] bf16"
std::string describe(const Case& of);

struct Choice {
  AttentionBackend backend;
  std::vector<std::string> reasons;  ///< why not those before it, one each
};

/// Why a backend does not compute forward and backward of the case; empty where it does.
using Refusal = std::function<std::string(AttentionBackend)>;

/// The first backend of the machine that takes both passes, or the one that was asked for by name. A backend
/// that is known not to take the case is not asked. Errors: UserError(usage) with the reason where the named
/// one refuses; no other takes over.
Choice choose(const Case& of, const Refusal& refusal);
/// The same where no library can be asked: of a named backend nothing more is presumed.
Choice choose(const Case& of);

}  // namespace attention
}  // namespace assay::spec
