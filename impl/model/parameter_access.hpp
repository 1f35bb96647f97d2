#pragma once
// The four calls through which the block loop uses its parameters. Models know no layout, layouts know no
// model. One rank does nothing in them, data parallelism reduces when a block's gradients are ready, a
// sharded layout all-gathers in acquire and frees in release.
#include "impl/model/views.hpp"

namespace assay::impl {

/// As what a block's weights are acquired. `operands`: what the GEMMs of a step read, which of linears in FP8
/// may be codes alone. `values`: in the compute type.
enum class Weights { operands, values };

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;

  /// Weights of a block, valid until its release. Calls nest: backward may acquire a block that forward still
  /// holds, as the same.
  virtual const BlockWeights& acquire(std::int64_t block, Weights as) = 0;
  virtual void release(std::int64_t block) = 0;

  /// Where backward accumulates the block's gradients.
  virtual BlockGradients gradients(std::int64_t block) = 0;

  /// Backward of this block is done for the current micro-batch. Called once per block and micro-batch, in
  /// the order L+1, L, ..., 0.
  virtual void gradients_ready(std::int64_t block) = 0;
};

}  // namespace assay::impl
