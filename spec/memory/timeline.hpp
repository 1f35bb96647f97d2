#pragma once
// One optimizer step on paper: the tensors of impl/run/executor.cpp and impl/model, made and let go in the
// same order, so that the largest moment of the step is known before anything is allocated.
#include "spec/layout/data_layout.hpp"
#include "spec/memory/ledger.hpp"
#include "spec/memory/recompute.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::memory {

/// What our kernels and libraries take on a GPU beside their results, whatever the shape.
inline constexpr std::int64_t product_workspace = std::int64_t{64} << 20;  ///< of cuBLASLt [B]
inline constexpr std::int64_t norm_partial_rows = 396;       ///< most rows in which a norm's backward sums
inline constexpr std::int64_t head_norm_partial_rows = 528;  ///< rows in which that of q and k sums

/// Whose kernels run: they differ in what they need beside their results.
enum class Machine { cpu, cuda };

/// What the memory of one rank depends on.
struct Setting {
  ModelSpec model;
  Dtype dtype = Dtype::f32;   ///< of activations and working weights
  Dtype states = Dtype::f32;  ///< with bf16 weights: of master weights and moments
  Machine machine = Machine::cpu;
  Recompute recompute = Recompute::norms_swiglu;
  std::int64_t micro = 1;            ///< B: sequences of one forward pass
  std::int64_t sequence_length = 1;  ///< T [tokens]
  std::int64_t micro_batches = 1;    ///< of this rank in one step
  std::int64_t staged_steps = 1;     ///< steps whose inputs are on the device together
  bool plain_attention = false;      ///< compute.attention=math: by plain products, whatever the shape
  bool flash_attention = false;      ///< compute.attention=flash, on a GPU
  bool documents = false;            ///< told apart: positions and a mask per token
  Layout layout = {};                ///< what of the state this rank holds
  bool rounded_sums = false;         ///< gradients of bf16 weights are summed over ranks in bf16
  std::int64_t sampled = 0;          ///< sentences that are sampled at the end, each at most T tokens
};

/// Runs everything that a rank holds through `ledger`: state for the whole run, then a step, then sampling.
/// Errors: SpecError of require_trainable; memory_c1 (micro, sequence_length or micro_batches below 1).
void walk(const Setting& setting, Ledger& ledger);

/// What one micro-batch keeps between forward and backward, blocks counted together. Errors: as walk.
std::vector<Item> kept_activations(const Setting& setting);

}  // namespace assay::spec::memory
