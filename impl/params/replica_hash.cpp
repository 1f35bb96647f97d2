#include "impl/params/replica_hash.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>
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

/// Compares `own` between the ranks of `copies`, and notes the ranks that have another than most. Returns
/// what most have, of all such groups in the order of their first ranks. Collective over `all`.
std::string compare(Communicator& all, const spec::RankGroup& copies, const std::string& own,
                    std::set<std::size_t>& odd) {
  const std::vector<std::string> hashes = all.all_gather(own),
                                 firsts = all.all_gather(std::to_string(copies.first));
  std::map<std::int64_t, std::vector<std::size_t>> groups;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) groups[std::stoll(firsts[rank])].push_back(rank);
  std::string common;
  for (const auto& [first, ranks] : groups) {
    const auto times = [&hashes, &group = ranks](const std::string& hash) {
      return std::count_if(group.begin(), group.end(),
                           [&](std::size_t rank) { return hashes[rank] == hash; });
    };
    // Of equally frequent hashes, that of the lowest rank.
    std::string most = hashes[ranks.front()];
    for (const std::size_t rank : ranks)
      if (times(hashes[rank]) > times(most)) most = hashes[rank];
    for (const std::size_t rank : ranks)
      if (hashes[rank] != most) odd.insert(rank);
    common += most;
  }
  return common;
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
  const spec::RankGroups& ranks = groups.ranks();
  const std::vector<const ParameterBuffers*> sets = buffers.sets();
  ReplicaCheck check;
  std::set<std::size_t> odd;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::string own = bits_hash(sets[i]->weights);
    if (sets[i]->router_biases.defined()) own += bits_hash(sets[i]->router_biases.view({-1}));
    check.hash += compare(groups.all(), ranks.sets.at(i).copies(), own, odd);
  }
  // Tensor ranks hold copies of what they share.
  for (const bool of_all : {true, false})
    compare(groups.all(), of_all ? ranks.tensor : ranks.holders,
            shared_hash(buffers, ranks.tensor.size, of_all), odd);
  for (const std::size_t rank : odd)
    check.odd += (check.odd.empty() ? "rank " : ", rank ") + std::to_string(rank);
  return check;
}

}  // namespace assay::impl
