#pragma once
// Decoder blocks of a sharded layout that are gathered as FP8 codes.               [spec/parallel/volume.md]
#include <map>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/model/views.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/parallel/gathered_codes.hpp"

namespace assay::impl {

/// Each rank quantises what it owns of a linear by the amax of the whole linear, which the ranks agree on
/// when the weights have changed. So the codes that come together are those of the whole, with one scale that
/// every rank knows. Gains and biases are on every rank, in the compute type.
class BlockCodes {
 public:
  /// `buffers` is sharded between the ranks of `shard`. Both must outlive this.
  BlockCodes(const ParameterBuffers& buffers, const spec::LinearPrecision& linear, Communicator& shard);

  /// Whether the block is gathered so.
  bool of(std::int64_t block) const { return codes_.of(block); }
  /// Before the first use: the block's codes come to `slot`, 1-D, at least as many bytes as the block has
  /// elements. Nothing where the block is not gathered so.
  void lay_out(std::int64_t block, const at::Tensor& slot);

  /// The ranks agree on each linear's amax, and bring gains and biases to each other. Collective.
  void weights_changed();
  /// Quantises this rank's shard of the block in its place in the slot, and begins to gather the others'.
  Communicator::Ticket begin_gather(std::int64_t block);
  /// The block's weights, of which the linears are codes in the slot.
  const BlockWeights& weights(std::int64_t block) const { return blocks_.at(block).weights; }

 private:
  struct Linear {
    at::Tensor own;   ///< of the shard, [R, C]; of a linear that lies in other shards, without entries
    at::Tensor amax;  ///< [1], of the whole
    quantise::Quantised own_codes;  ///< in the slot; with the scale of the whole
  };
  struct Block {
    std::vector<Linear> linears;
    at::Tensor own, all;  ///< codes of the shard and of all shards, in the slot
    BlockWeights weights;
  };

  const ParameterBuffers& buffers_;
  Communicator& shard_;
  const spec::GatheredCodes codes_;
  WholeVectors vectors_;
  at::Tensor amax_;    ///< [linears] fp32, of these blocks in their order
  at::Tensor scales_;  ///< [linears, 4] fp32, the first of each row: cuBLASLt reads a scale on 16 bytes
  std::map<std::int64_t, Block> blocks_;
};

}  // namespace assay::impl
