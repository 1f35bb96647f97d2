#pragma once
// The ops of a step as calls that can be made alone, at the shapes of the step.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "spec/time/step_ops.hpp"

namespace assay::impl::bench {

/// One op of a step with tensors of its own, drawn from a normal distribution.
struct OpCall {
  std::string name;               ///< "qkv weight gradient"
  spec::time::StepOpCount count;  ///< of the call as it is made here
  std::function<void()> prepare;  ///< gives back what the last call has overwritten; may be empty
  std::function<void()> call;
};

/// Calls `use` for every op of spec::time::step_ops in turn; its tensors live as long as that call and its
/// neighbours of the same shape. Attention's backward and rope's are one call, as in a step. The optimizer
/// works on at most 2^28 parameters at a time. `shape.head_rows` 0 means the trainer's chunks
/// (impl/model/lm_head.hpp). Errors: those of the ops; c10::OutOfMemoryError.
void for_each_op(const spec::ModelSpec& model, spec::time::StepShape shape, at::Device device,
                 const std::function<void(const OpCall&)>& use);

/// The shape of a step as the trainer runs it: head_rows filled in.
spec::time::StepShape trainer_shape(const spec::ModelSpec& model, spec::time::StepShape shape,
                                    at::Device device);

/// Columns of the head's products: the vocabulary, padded on a GPU.
std::int64_t head_columns(const spec::ModelSpec& model, Dtype dtype, at::Device device);

}  // namespace assay::impl::bench
