#pragma once
// The flat buffers of a model: working weights, gradients, master weights and the optimizer's moments, all
// laid out by one spec::Partition. Reduction, clip, optimizer and checkpoint work on ranges of them.
#include <ATen/core/Tensor.h>

#include <iterator>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/model/views.hpp"
#include "spec/ops/optimizer/optimizer.hpp"
#include "spec/parallel/parameter_sets.hpp"
#include "spec/tolerance.hpp"

namespace assay::impl {

/// ATen's name of a compute dtype.
at::ScalarType scalar_type(Dtype dtype);

/// Vectors that every rank holds whole, beside a buffer of which a rank may own a part.
struct WholeVectors {
  at::Tensor values;                     ///< 1-D; undefined without any
  spec::Inventory offsets;               ///< in `values`
  std::vector<at::Tensor> own, sources;  ///< what this rank owns: views of `values` and of the buffer
};

/// Of one set of a rank's parameters (spec/parallel/parameter_sets.md), and behind the first one the others.
/// Each buffer is whole, [flat_size], or this rank's shards, [shard_size] (spec/parallel/partition.md). With
/// one rank to a copy the two are the same.
struct ParameterBuffers {
  spec::Partition partition;
  spec::Inventory inventory;                ///< of the partition: offsets in whole buffers
  std::vector<spec::Placement> placements;  ///< of `inventory` in the whole model, one for each parameter
  std::int64_t shard_rank = 0;              ///< of the partition's ranks, the one that this is
  at::Tensor weights;                       ///< compute dtype: what forward and backward read
  at::Tensor gradients;                     ///< fp32 for bf16 weights, else the weights' dtype
  at::Tensor master;            ///< what the optimizer adds to: fp32 beside bf16 weights, else the weights
  at::Tensor moment1, moment2;  ///< dtype of master
  WholeVectors gains;           ///< beside bf16 weights: the gains of norms in fp32, of the master weights
  /// Of the gradients that this rank owns: those of parameters that every tensor rank holds, and of key and
  /// value heads that some of them hold.
  std::vector<std::vector<at::Tensor>> of_all_tensor_ranks, of_holders;  ///< by block
  /// Those of both that another tensor rank counts in the norm.
  std::vector<at::Tensor> counted_elsewhere;

  // In the first set:
  std::vector<ParameterBuffers> others = {};
  spec::Inventory model;  ///< of the whole model: what initial values and checkpoints name
  /// [sparse layers, X] the routers' biases, which no gradient moves, on every rank: fp32, or fp64 beside
  /// fp64 weights; undefined where the model has none. What the other buffers hold under their names is
  /// unused.
  at::Tensor router_biases;

  /// This set and the others.
  std::vector<const ParameterBuffers*> sets() const;
  std::vector<ParameterBuffers*> sets();
  bool whole(const at::Tensor& buffer) const { return buffer.numel() == inventory.flat_size; }
  /// Bytes of all buffers of all sets, storage shared by two counted once.
  std::int64_t bytes() const;
};

/// Where the parts of spec::adamw are, in their order.
inline constexpr at::Tensor ParameterBuffers::*state_parts[] = {
    &ParameterBuffers::master, &ParameterBuffers::moment1, &ParameterBuffers::moment2};
static_assert(std::size(state_parts) == spec::adamw::parts.size());

/// Zeroed buffers of what a rank holds of `model`, the whole one. `states`: of bf16 weights, Dtype::f32 for
/// master weights and moments in fp32, Dtype::bf16 for moments in bf16 and no master weights; not read for
/// other weights. Gaps between parameters stay zero for ever, so that norms and hashes over ranges are exact.
/// Errors: as spec::share.
ParameterBuffers allocate(const spec::ModelSpec& model, Dtype dtype, at::Device device,
                          Dtype states = Dtype::f32, const spec::Place& place = {});

/// Initial values of every parameter (spec/ops/init/init.md), a pure function of (model, seed): the same bits
/// in every layout.
void initialise(ParameterBuffers& buffers, const spec::ModelSpec& model, std::uint64_t seed);

/// Those of `offsets`, zeroed, in `type`, of what `buffer` holds; nothing where `offsets` has none.
WholeVectors whole_vectors(const ParameterBuffers& buffers, const at::Tensor& buffer, spec::Inventory offsets,
                           at::ScalarType type);
/// Copies what this rank owns from the buffer.
void refresh(const WholeVectors& vectors);
/// Brings all of them to every rank of `shard`, between which the buffer is sharded. One sum over ranks,
/// which is exact: all terms but one are zero. Collective where there are any.
void gather(const WholeVectors& vectors, Communicator& shard);

/// The router bias that is parameter number `index`, a view [X]; undefined of every other parameter.
at::Tensor router_bias_of(const ParameterBuffers& buffers, std::size_t index);

/// Weights of a block as the layers use them, in `flat` at `offsets`; gains from `buffers.gains` where there
/// are any, and a router's bias.
BlockWeights weight_views(const ParameterBuffers& buffers, const at::Tensor& flat,
                          const spec::Inventory& offsets, const spec::ModelSpec& model, std::int64_t block);

/// What this rank owns of a run, in one of the buffers.
at::Tensor owned(const ParameterBuffers& buffers, const at::Tensor& buffer, const spec::Partition::Run& run);
/// What this rank owns of parameter number `index`, where that is anything; else undefined.
at::Tensor owned_of(const ParameterBuffers& buffers, const at::Tensor& buffer, std::size_t index);
/// The part of a block that this rank owns.
at::Tensor owned(const ParameterBuffers& buffers, const at::Tensor& buffer, std::int64_t block);

/// Sum of squares of a set's gradients that this rank owns and no other tensor rank counts, fp64 scalar on
/// their device.
at::Tensor owned_sum_of_squares(const ParameterBuffers& buffers);

/// The sum over ranks of `own`, added up in the order of the ranks from what each gave: the same bits on
/// every rank, and in every group whose ranks give the same. Collective.
at::Tensor sum_in_rank_order(const at::Tensor& own, Communicator& ranks);

/// Completes the gradients of parameters that several tensor ranks hold: the sum over them, of what this rank
/// owns. Once a step, after the sums over data ranks. Collective.
void sum_shared_gradients(const ParameterBuffers& buffers, Communicator& tensor, Communicator& holders);

/// Name of the first parameter with a NaN or an infinity in `gradients`, which begins at element `first` of
/// the whole buffer; empty if none.
std::string first_non_finite(const spec::Inventory& inventory, const at::Tensor& gradients,
                             std::int64_t first);
/// The same for all gradients that this rank owns.
std::string first_non_finite_gradient(const ParameterBuffers& buffers);

}  // namespace assay::impl
