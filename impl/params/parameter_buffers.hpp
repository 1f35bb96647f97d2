#pragma once
// The flat buffers of a model: working weights, gradients, master weights and the optimizer's moments, all
// laid out by one spec::Partition. Reduction, clip, optimizer and checkpoint work on ranges of them.
#include <ATen/core/Tensor.h>

#include <vector>

#include "impl/model/views.hpp"
#include "spec/parallel/data_layout.hpp"
#include "spec/parallel/partition.hpp"
#include "spec/tolerance.hpp"

namespace assay::impl {

/// ATen's name of a compute dtype.
at::ScalarType scalar_type(Dtype dtype);

/// Each buffer is whole, [flat_size], or this rank's shards, [shard_size] (spec/parallel/partition.md). With
/// one rank to a copy the two are the same.
struct ParameterBuffers {
  spec::Partition partition;
  spec::Inventory inventory;     ///< of the partition: offsets in whole buffers
  std::int64_t shard_rank = 0;   ///< of the partition's ranks, the one that this is
  at::Tensor weights;            ///< compute dtype: what forward and backward read
  at::Tensor gradients;          ///< fp32 for bf16 weights, else the weights' dtype
  at::Tensor master;             ///< what the optimizer adds to: fp32 beside bf16 weights, else the weights
  at::Tensor moment1, moment2;   ///< dtype of master
  at::Tensor gains;              ///< beside bf16 weights: the gains of norms in fp32, whole on every rank
  spec::Inventory gain_offsets;  ///< in `gains` (spec::norm_gains)
  std::vector<at::Tensor> own_gains, own_gain_masters;  ///< of what this rank owns: views into both

  bool whole(const at::Tensor& buffer) const { return buffer.numel() == inventory.flat_size; }
  /// Bytes of all buffers, storage shared by two counted once.
  std::int64_t bytes() const;
};

/// Zeroed buffers of rank `shard_rank` of a layout's shard group. `states`: of bf16 weights, Dtype::f32 for
/// master weights and moments in fp32, Dtype::bf16 for moments in bf16 and no master weights; not read for
/// other weights. Gaps between parameters stay zero for ever, so that norms and hashes over ranges are exact.
ParameterBuffers allocate(const spec::ModelSpec& model, Dtype dtype, at::Device device,
                          Dtype states = Dtype::f32, const spec::Layout& layout = {},
                          std::int64_t shard_rank = 0);

/// Initial values of every parameter (spec/ops/init.md), a pure function of (model, seed): the same bits in
/// every layout.
void initialise(ParameterBuffers& buffers, const spec::ModelSpec& model, std::uint64_t seed);

/// Copies the gains that this rank owns from the master weights to `gains`, where there are any, and zeros
/// the others, so that the sum over the ranks of a shard group is all gains.
void refresh_gains(const ParameterBuffers& buffers);

/// Weights of a block as the layers use them, in `flat` at `offsets`; gains from `buffers.gains` where there
/// are any.
BlockViews weight_views(const ParameterBuffers& buffers, const at::Tensor& flat,
                        const spec::Inventory& offsets, const spec::ModelSpec& model, std::int64_t block);

/// What this rank owns of a run, in one of the buffers.
at::Tensor owned(const ParameterBuffers& buffers, const at::Tensor& buffer, const spec::Partition::Run& run);
/// The part of a block that this rank owns.
at::Tensor owned(const ParameterBuffers& buffers, const at::Tensor& buffer, std::int64_t block);

/// Copies the values of a whole parameter to where the buffer holds them: all, this rank's shard, or nothing.
void store(const ParameterBuffers& buffers, const at::Tensor& buffer, const spec::Parameter& parameter,
           const at::Tensor& values);

/// Sum of squares of the gradients that this rank owns, fp64 scalar on their device.
at::Tensor owned_sum_of_squares(const ParameterBuffers& buffers);

/// Name of the first parameter with a NaN or an infinity in `gradients`, which begins at element `first` of
/// the whole buffer; empty if none.
std::string first_non_finite(const spec::Inventory& inventory, const at::Tensor& gradients,
                             std::int64_t first);
/// The same for all gradients that this rank owns.
std::string first_non_finite_gradient(const ParameterBuffers& buffers);

}  // namespace assay::impl
