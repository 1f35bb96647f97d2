#include "impl/params/slices.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "impl/comm/refusal.hpp"
#include "impl/machine/host_name.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
using Range = spec::Inventory::Range;

Range common(const Range& a, const Range& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// Appends what a set holds in one of its buffers. `written`: of what it owns,
/// at these elements of its shards, and only where it is the first of the tensor ranks that hold the same.
void append(const ParameterBuffers& buffers, Buffer buffer, const std::optional<Range>& written,
            std::vector<HeldSlice>& out) {
  const at::Tensor& flat = buffers.*buffer;
  const bool whole = buffers.whole(flat);
  for (std::size_t i = 0; i < buffers.placements.size(); ++i) {
    const spec::Placement& placement = buffers.placements[i];
    const spec::Parameter& own = buffers.inventory.parameters[i];
    if (!own.learned() || (written && placement.holder > 0)) continue;
    const Range shard = buffers.partition.owned(own.block, buffers.shard_rank);
    const std::int64_t to_shards =
        buffers.partition.blocks[static_cast<std::size_t>(own.block)].shard_begin - shard.begin;
    // In the whole buffer.
    Range held{own.offset, own.offset + own.size};
    if (written || !whole) held = common(held, shard);
    if (written) held = common(held, {written->begin - to_shards, written->end - to_shards});
    const std::int64_t begins = own.offset + (whole ? 0 : to_shards);  // the parameter, in the tensor
    for (const spec::HeldRange& each :
         spec::held_ranges(placement, own, held.begin - own.offset, held.end - own.offset))
      out.push_back({placement.number, each.slice,
                     flat.narrow(0, begins + each.first, each.slice.size())
                         .view({each.slice.rows, each.slice.columns})});
  }
}

void append_biases(const ParameterBuffers& buffers, std::vector<HeldSlice>& out) {
  for (std::size_t i = 0; i < buffers.model.parameters.size(); ++i)
    if (const at::Tensor bias = router_bias_of(buffers, i); bias.defined())
      out.push_back({i, spec::whole_slice(buffers.model.parameters[i].shape), bias.view({-1, 1})});
}

void sort(std::vector<HeldSlice>& slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const HeldSlice& a, const HeldSlice& b) { return a.number < b.number; });
}

/// Elements of its shards that a rank writes.
Range written_of(const ParameterBuffers& buffers, const Copies& copies) {
  if (copies.count == 0) return {0, 0};
  return spec::equal_part(buffers.partition.shard_size, copies.number, copies.count);
}

/// The copy that this rank is among those of `ranks` that write; no part where it does not. Collective.
Copies copy_among(Communicator& ranks, bool writes) {
  const std::vector<std::string> all = ranks.all_gather(writes ? "1" : "0");
  const auto me = all.begin() + ranks.rank();
  Copies copies{.number = std::count(all.begin(), me, "1"), .count = std::count(all.begin(), all.end(), "1")};
  if (copies.count == 0)
    throw UserError(ExitCode::io,
                    "no rank that holds the same part of the state as this one sees the folder of rank 0 "
                    "(host " +
                        host_name() +
                        "): give a run.directory on a disk that all hosts share, or parallel.data=replicate "
                        "or hybrid, so that each host holds everything");
  if (!writes) copies = {0, 0};
  return copies;
}
}  // namespace

std::vector<HeldSlice> held_slices(const ParameterBuffers& buffers, Buffer buffer) {
  std::vector<HeldSlice> out;
  for (const ParameterBuffers* set : buffers.sets()) append(*set, buffer, {}, out);
  if (buffer == &ParameterBuffers::master) append_biases(buffers, out);
  sort(out);
  return out;
}

Writer writer_of(LayoutGroups& groups) {
  Writer writer{.sets = {}, .biases = groups.all().rank() == 0};
  for (const LayoutGroups::Set& set : groups.sets())
    writer.sets.push_back({set.replicas.rank(), set.replicas.size()});
  return writer;
}

Writer writer_of(LayoutGroups& groups, bool writes) {
  Writer writer{.sets = {}, .biases = writes && groups.all().rank() == 0};
  refuse_together(groups.all(), [&] {
    // Every rank is in all exchanges, whatever the first one finds.
    std::optional<UserError> refused;
    for (const LayoutGroups::Set& set : groups.sets()) try {
        writer.sets.push_back(copy_among(set.replicas, writes));
      } catch (const UserError& error) {
        refused = error;
      }
    if (refused) throw UserError(*refused);
  });
  return writer;
}

std::vector<HeldSlice> own_slices(const ParameterBuffers& buffers, Buffer buffer, const Writer& writer) {
  std::vector<HeldSlice> out;
  const std::vector<const ParameterBuffers*> sets = buffers.sets();
  for (std::size_t i = 0; i < sets.size(); ++i)
    append(*sets[i], buffer, written_of(*sets[i], writer.sets.at(i)), out);
  if (buffer == &ParameterBuffers::master && writer.biases) append_biases(buffers, out);
  sort(out);
  return out;
}

void Destination::put(const spec::Slice& slice, const at::Tensor& values) const {
  const auto part = [](const at::Tensor& of, const spec::Slice& held, const spec::Slice& wanted) {
    const spec::Slice at = spec::relative(wanted, held);
    return of.narrow(0, at.row, at.rows).narrow(1, at.column, at.columns);
  };
  for (const HeldSlice& each : into) {
    const spec::Slice common = spec::intersection(slice, each.slice);
    if (common.size() > 0) part(each.values, each.slice, common).copy_(part(values, slice, common));
  }
}

std::vector<Destination> destinations(const ParameterBuffers& buffers, Buffer buffer) {
  std::vector<Destination> out(buffers.model.parameters.size());
  const auto add = [&](const std::vector<HeldSlice>& held) {
    // The later ones are the wider ones: working weights may be whole where the state is in shards.
    for (const HeldSlice& each : held) out[each.number].read.clear();
    for (const HeldSlice& each : held) {
      out[each.number].read.push_back(each.slice);
      out[each.number].into.push_back(each);
    }
  };
  add(held_slices(buffers, buffer));
  if (buffer == &ParameterBuffers::master && !buffers.master.is_same(buffers.weights))
    add(held_slices(buffers, &ParameterBuffers::weights));
  return out;
}

}  // namespace assay::impl
