#include "impl/params/replica_hash.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "spec/checkpoint/content_hash.hpp"

namespace assay::impl {

namespace {
at::ScalarType integers_as_wide(const at::Tensor& tensor) {
  switch (tensor.element_size()) {
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      throw std::invalid_argument("hashes elements of 2, 4 or 8 bytes");
  }
}

/// Sums that wrap, over rows and over columns.
at::Tensor sums(const at::Tensor& integers, std::int64_t columns) {
  const at::Tensor grid = integers.view({-1, columns});
  return at::cat({at::sum(grid, {1}, false, at::kLong), at::sum(grid, {0}, false, at::kLong)});
}
}  // namespace

std::string bits_hash(const at::Tensor& flat) {
  constexpr std::int64_t columns = 1 << 14;
  const at::Tensor integers = flat.view(integers_as_wide(flat));
  const std::int64_t even = integers.numel() / columns * columns, rest = integers.numel() - even;
  std::vector<at::Tensor> parts;
  if (even > 0) parts.push_back(sums(integers.narrow(0, 0, even), columns));
  if (rest > 0) parts.push_back(sums(integers.narrow(0, even, rest), rest));
  const at::Tensor all = parts.empty() ? at::empty({0}, at::kLong) : at::cat(parts).cpu();
  return spec::content_hash({static_cast<const std::byte*>(all.const_data_ptr()), all.nbytes()});
}

ReplicaCheck compare_replicas(const ParameterBuffers& buffers, LayoutGroups& groups) {
  // The copy of a shard is the same shard of another replica; whole weights are a copy of every other data
  // rank's. Each tensor rank has copies of its own part.
  const std::int64_t tensor = groups.tensor().size(),
                     stride = tensor * (groups.layout().shards_weights() ? groups.layout().shard_ranks : 1);
  const std::vector<std::string> hashes = groups.all().all_gather(bits_hash(buffers.weights));
  const auto ranks = static_cast<std::int64_t>(hashes.size());
  const auto of = [&](std::int64_t rank) { return hashes[static_cast<std::size_t>(rank)]; };
  ReplicaCheck check;
  std::vector<std::string> common;
  for (std::int64_t part = 0; part < stride; ++part) {
    const auto copies = [&](const std::string& hash) {
      std::int64_t count = 0;
      for (std::int64_t r = part; r < ranks; r += stride) count += of(r) == hash;
      return count;
    };
    // Of equally frequent hashes, that of the lowest rank.
    common.push_back(of(part));
    for (std::int64_t r = part; r < ranks; r += stride)
      if (copies(of(r)) > copies(common.back())) common.back() = of(r);
    check.hash += common.back();
  }
  for (std::int64_t r = 0; r < ranks; ++r)
    if (of(r) != common[static_cast<std::size_t>(r % stride)])
      check.odd += (check.odd.empty() ? "rank " : ", rank ") + std::to_string(r);
  return check;
}

}  // namespace assay::impl
