#pragma once
// What the first rank of Megatron-LM holds of a model that is cut over tensor and pipeline ranks.
#include <optional>
#include <string_view>
#include <vector>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::megatron {

/// Its count of parameters. Source: Megatron-LM, megatron/core/tensor_parallel/layers.py and
/// megatron/core/transformer: tensor ranks share the rows of embedding and head, heads and inner width, with
/// the biases of what they share; norms and the biases of what is summed over them are each rank's. The first
/// of several stages has the embedding and as many layers as the others; a single one the last norm and,
/// where it is not tied, the head.
class RankArguments {
 public:
  void read(std::string_view name, std::string_view value);
  /// At the end of the arguments: the blocks that they make, where these are all there. Those of another run
  /// may follow.
  void end(const std::optional<BlockMlp>& mlp) {
    mlp_ = mlp;
    uneven_stages_ = uneven_;
    qkv_open_ = !qkv_said_;
    uneven_ = qkv_said_ = false;
  }
  /// Every count of the first rank, as the arguments leave biases open, the stated one first; none where
  /// ranks do not share alike, or an argument that it takes is lost. [parameters]
  std::vector<double> counts(const RecordBuilder& builder, bool normed_queries) const;

 private:
  std::optional<BlockMlp> mlp_;
  std::optional<bool> tied_;
  bool all_biases_ = false, qkv_biases_ = false, norm_biases_ = false;
  bool qkv_said_ = false, qkv_open_ = true;  ///< likewise of queries', keys' and values' biases: whether said
  /// Stages of other layers, or of other parts: by the arguments so far; by those of the run.
  bool uneven_ = false, uneven_stages_ = false;
};

}  // namespace assay::spec::audit::megatron
