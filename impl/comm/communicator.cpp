#include "impl/comm/communicator.hpp"

#include <stdexcept>

namespace assay::impl {

bool check_parts(const at::Tensor& whole, const at::Tensor& shard, int rank, int size) {
  if (!whole.is_contiguous() || !shard.is_contiguous() || whole.scalar_type() != shard.scalar_type() ||
      whole.device() != shard.device() || whole.numel() != shard.numel() * size)
    throw std::invalid_argument(
        "a collective of equal parts takes contiguous tensors of one dtype and device, " +
        std::to_string(size) + " parts of " + std::to_string(shard.numel()) + " elements, not " +
        std::to_string(whole.numel()));
  const auto* begin = static_cast<const char*>(whole.const_data_ptr());
  const auto* part = static_cast<const char*>(shard.const_data_ptr());
  const auto bytes = static_cast<std::ptrdiff_t>(shard.nbytes());
  if (part == begin + rank * bytes) return true;
  if (part + bytes > begin && part < begin + size * bytes)
    throw std::invalid_argument("a shard overlaps with the whole, but is not this rank's part of it");
  return false;
}

}  // namespace assay::impl
