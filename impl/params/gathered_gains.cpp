#include "impl/params/gathered_gains.hpp"

namespace assay::impl {

void gather_gains(const ParameterBuffers& buffers, Communicator& shard) {
  refresh_gains(buffers);
  if (buffers.gains.defined() && buffers.partition.ranks > 1) shard.all_reduce_sum(buffers.gains);
}

}  // namespace assay::impl
