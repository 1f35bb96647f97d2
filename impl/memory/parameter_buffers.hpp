#pragma once
// The flat buffers of a model: working weights, gradients, master weights and the optimizer's moments, all
// laid out by one spec::Inventory. Reduction, clip, optimizer and checkpoint work on ranges of them.
#include <ATen/core/Tensor.h>

#include "spec/model/inventory.hpp"
#include "spec/tolerance.hpp"

namespace assay::impl {

/// ATen's name of a compute dtype.
at::ScalarType scalar_type(Dtype dtype);

struct ParameterBuffers {
  spec::Inventory inventory;
  at::Tensor weights;    ///< [flat_size] compute dtype: what forward and backward read
  at::Tensor gradients;  ///< [flat_size] fp32 for bf16 weights, else the weights' dtype
  at::Tensor master;  ///< [flat_size] what the optimizer adds to: fp32 beside bf16 weights, else the weights
  at::Tensor moment1, moment2;  ///< [flat_size] dtype of master

  /// Bytes of all buffers, storage shared by two counted once.
  std::int64_t bytes() const;
};

/// Zeroed buffers. `states`: of bf16 weights, Dtype::f32 for master weights and moments in fp32, Dtype::bf16
/// for moments in bf16 and no master weights; not read for other weights. Gaps between parameters stay zero
/// for ever, so that norms and hashes over ranges are exact.
ParameterBuffers allocate(const spec::ModelSpec& model, Dtype dtype, at::Device device,
                          Dtype states = Dtype::f32);

/// Initial values of every parameter (spec/ops/init.md), a pure function of (model, seed).
void initialise(ParameterBuffers& buffers, const spec::ModelSpec& model, std::uint64_t seed);

/// Name of the first parameter within `range` whose gradient holds a NaN or an infinity; empty if none.
std::string first_non_finite_gradient(const ParameterBuffers& buffers, spec::Inventory::Range range);

}  // namespace assay::impl
