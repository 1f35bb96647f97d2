#pragma once
// What the memory of a training run depends on. (spec/plan/plan.md)
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/memory/head.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/model/recompute.hpp"
#include "spec/ops/attention/attention_choice.hpp"
#include "spec/ops/linear/linear_precision.hpp"
#include "spec/ops/router/router.hpp"
#include "spec/parallel/parameter_sets.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::memory {

/// Memory that our kernels and libraries take on a GPU beside their results, whatever the shape.
inline constexpr std::int64_t gemm_workspace = std::int64_t{64} << 20;  ///< of cuBLASLt [B]
inline constexpr std::int64_t norm_partial_rows = 396;        ///< most rows in which a norm's backward sums
inline constexpr std::int64_t head_norm_partial_rows = 528;   ///< rows in which that of q and k sums
inline constexpr std::int64_t token_norm_partial_rows = 264;  ///< the same with a norm across heads

/// Of a sentence that is sampled at the end, and of its keys and values; those of the grammar are far
/// shorter.
inline constexpr std::int64_t most_sampled_tokens = 256;

/// Whose kernels run. They differ in the memory that they need beside their results.
enum class Machine { cpu, cuda };

/// What the memory of one rank depends on.
struct Setting {
  ModelSpec model;              ///< what the rank computes: with several tensor ranks, its part of `whole`
  Dtype dtype = Dtype::f32;     ///< of activations and working weights
  Dtype states = Dtype::f32;    ///< with bf16 weights: of master weights and moments
  LinearPrecision linear = {};  ///< of the linears of decoder blocks
  Machine machine = Machine::cpu;
  Recompute recompute = Recompute::norms_swiglu;
  std::int64_t micro = 1;            ///< B: sequences of one micro-batch
  std::int64_t sequence_length = 1;  ///< T [tokens]
  std::int64_t micro_batches = 1;    ///< of this rank in one step
  std::int64_t staged_steps = 1;     ///< steps whose inputs are on the device together
  AttentionBackend attention = AttentionBackend::automatic;  ///< compute.attention
  bool fixed_order = false;  ///< compute.deterministic: sums of attention's backward, on a GPU
  /// The GPU's grouped GEMM sums the gradients of experts' weights in fp32; else it makes them in bf16, and a
  /// pass adds them.
  bool grouped_sums = true;
  std::int64_t sms = 132;  ///< of the GPU, 132 on H100 and H200; FlashAttention in a fixed order needs it
  router::Auxiliary auxiliary = {};     ///< losses whose gradients reach routers
  double capacity = 0;                  ///< factor by which rows of an expert are limited; 0: none is dropped
  std::int64_t sources = 0;             ///< of a mixture, whose losses are kept apart; 0: none
  bool documents = false;               ///< attention stays within documents: positions and a mask per token
  Layout layout = {};                   ///< what of the state this rank holds
  std::int64_t tensor_ranks = 1;        ///< of which each data rank is made
  std::int64_t expert_ranks = 1;        ///< that hold the experts of a layer between them
  std::optional<ModelSpec> whole = {};  ///< the model that several tensor ranks split
  bool rounded_sums = false;            ///< gradients of bf16 weights are summed over ranks in bf16
  std::int64_t chunk_logits = most_logits;  ///< at most, of a chunk of the head [elements]
  std::int64_t validation_batch = 0;        ///< sequences of a forward pass of validation; 0: none is run
  bool captured = false;                    ///< steps are captured: their memory stays theirs between them
  std::int64_t sampled = 0;                 ///< sentences that are sampled at the end
  std::int64_t common_sequences =
      0;  ///< of a rank in every stage of a ramp: micro-batches divide them; 0: any do
  /// Of several expert ranks: rows that this rank's experts get in a layer over their mean, N A. Routing
  /// brings at most most_load (spec/memory/expert_load.hpp). A rank whose layers get less takes less.
  double load = 1;
  std::vector<double> layer_loads = {};  ///< of a micro-batch's sparse layers, where known; empty: `load`
};

/// What the first rank of such a run holds. Errors: as spec::share.
inline Share share_of(const Setting& s) {
  return share(s.whole.value_or(s.model),
               {.layout = s.layout, .tensor_ranks = s.tensor_ranks, .expert_ranks = s.expert_ranks});
}

}  // namespace assay::spec::memory
