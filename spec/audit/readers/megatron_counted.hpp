#pragma once
// What Megatron-LM's arguments say of the parameters of a block beside its matrices.
#include <optional>
#include <string_view>

#include "spec/model/model_spec.hpp"

namespace assay::spec::audit::megatron {

/// Whether a count of parameters can be held to the last digit to the shape that the arguments make. Source:
/// Megatron-LM, megatron/training/arguments.py (_add_network_size_args) and megatron/core/transformer: beside
/// the matrices a block has gains and biases of its norms, biases of its projections, gains of queries and
/// keys (qk_layernorm), and one offset per head (softmax_type learnable).
class CountedArguments {
 public:
  void read(std::string_view name, std::string_view value);
  /// Whether queries and keys are normed, where that is said.
  std::optional<bool> normed_queries() const { return normed_queries_; }
  /// Of a block's inputs, where that is said; LayerNorm's are gain and bias.
  std::optional<Norm> norm() const {
    return norm_said_ ? std::optional(with_mean_ ? Norm::layer_norm : Norm::rms_norm) : std::nullopt;
  }
  /// Whether each argument that makes such parameters was read with a value whose parameters are known, and
  /// none that may make others is set.
  bool known() const;

 private:
  std::optional<bool> normed_queries_;
  bool norm_said_ = false, with_mean_ = false;  ///< RMSNorm or LayerNorm; the second, with biases
  bool softmax_said_ = false, windows_said_ = false;
  bool bias_said_ = false;
  bool other_ = false;
};

}  // namespace assay::spec::audit::megatron
