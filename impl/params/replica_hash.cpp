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
/// Of the weights that this rank owns of parameters that every tensor rank holds, or that some hold.
std::string shared_hash(const ParameterBuffers& buffers, std::int64_t tensor_ranks, bool of_all) {
  std::vector<at::Tensor> parts = {at::zeros({1}, buffers.weights.options())};
  for (std::size_t i = 0; i < buffers.placements.size(); ++i) {
    const spec::Placement& placement = buffers.placements[i];
    if (!placement.shared() || (placement.holders == tensor_ranks) != of_all) continue;
    if (const at::Tensor own = owned_of(buffers, buffers.weights, i); own.defined()) parts.push_back(own);
  }
  return bits_hash(at::cat(parts));
}

std::pair<std::string, std::string> split(const std::string& words) {
  const std::size_t blank = words.find(' ');
  return {words.substr(0, blank), words.substr(blank + 1)};
}

/// Notes the ranks whose hashes are others than those of most: every stride-th rank holds the same bits.
void compare_every(Communicator& all, const std::string& own, std::int64_t stride, ReplicaCheck& check) {
  const std::vector<std::string> hashes = all.all_gather(own);
  const auto ranks = static_cast<std::int64_t>(hashes.size());
  const auto of = [&](std::int64_t rank) { return hashes[static_cast<std::size_t>(rank)]; };
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
  // Data ranks hold copies: of a shard, those that have the same shard; of whole weights, all of them. Each
  // tensor rank compares its own part of the model. Of experts all ranks that hold the same ones have copies.
  const auto shards = [](const spec::Layout& layout) {
    return layout.shards_weights() ? layout.shard_ranks : 1;
  };
  const std::int64_t tensor = groups.tensor().size();
  ReplicaCheck check;
  std::string own = bits_hash(buffers.weights);
  if (buffers.router_biases.defined()) own += bits_hash(buffers.router_biases.view({-1}));
  compare_every(groups.all(), own, tensor * shards(groups.layout()), check);
  if (const LayoutGroups* experts = groups.experts())
    compare_every(groups.all(), bits_hash(buffers.experts->weights),
                  groups.expert().size() * shards(experts->layout()), check);
  const std::int64_t ranks = groups.all().size();
  // Tensor ranks hold copies of what they share.
  const std::vector<std::string> shared =
      groups.all().all_gather(shared_hash(buffers, groups.tensor().size(), /*of_all=*/true) + " " +
                              shared_hash(buffers, groups.tensor().size(), /*of_all=*/false));
  const std::int64_t holders = groups.holders().size();
  for (std::int64_t r = 0; r < ranks; ++r) {
    const auto words = [&](std::int64_t rank) { return split(shared[static_cast<std::size_t>(rank)]); };
    const std::int64_t first = r / tensor * tensor, first_holder = r / holders * holders;
    if (words(r).first != words(first).first || words(r).second != words(first_holder).second)
      check.odd += (check.odd.empty() ? "rank " : ", rank ") + std::to_string(r);
  }
  return check;
}

}  // namespace assay::impl
