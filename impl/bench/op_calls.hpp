#pragma once
// The ops of a step as calls that can be made alone, at the shapes of the step.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "spec/memory/setting.hpp"
#include "spec/time/step_ops.hpp"

namespace assay::impl::bench {

/// One op of a step, on the tensors that it meets there.
struct OpCall {
  std::string name;               ///< "qkv weight gradient"
  spec::time::StepOpCount count;  ///< of the call as it is made here; `calls`: of this op, whatever size
  double equal_calls;             ///< of this size that move as many bytes as all of these
  std::function<void()> prepare;  ///< restores what the last call has overwritten; may be empty
  std::function<void()> call;
};

/// Runs forward and backward of one micro-batch of a model of one decoder block, on random weights and
/// tokens, and calls `use` for every op in turn, once for each op and pass; then for those of the optimizer,
/// which work on at most 2^28 parameters at a time. What recompute runs again is forward's. Errors: those of
/// the ops; c10::OutOfMemoryError; UserError of require_trainable.
void for_each_op(const spec::memory::Setting& setting, at::Device device,
                 const std::function<void(const OpCall&)>& use);

}  // namespace assay::impl::bench
