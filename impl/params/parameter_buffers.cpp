#include "impl/params/parameter_buffers.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "impl/ops/init/init.hpp"

namespace assay::impl {

namespace {
/// Where a buffer holds a part of a parameter: elements [first, first + size) of the parameter at
/// [begin, begin + size) of the buffer.
struct Part {
  std::int64_t begin = 0, first = 0, size = 0;
};

/// What this rank owns of a parameter.
Part owned_part(const ParameterBuffers& buffers, const at::Tensor& buffer, const spec::Parameter& parameter) {
  const auto range = buffers.partition.owned(parameter.block, buffers.shard_rank);
  const std::int64_t begin = std::max(range.begin, parameter.offset),
                     end = std::min(range.end, parameter.offset + parameter.size);
  if (begin >= end) return {};
  const std::int64_t shard_begin =
      buffers.partition.blocks[static_cast<std::size_t>(parameter.block)].shard_begin;
  return {buffers.whole(buffer) ? begin : shard_begin + begin - range.begin, begin - parameter.offset,
          end - begin};
}

/// Copies what this tensor rank holds of a parameter, all of it and flat, to where the buffer holds it.
void store_own(const ParameterBuffers& buffers, const at::Tensor& buffer, const spec::Parameter& own,
               const at::Tensor& values) {
  const Part part = buffers.whole(buffer) ? Part{own.offset, 0, own.size} : owned_part(buffers, buffer, own);
  buffer.narrow(0, part.begin, part.size).copy_(values.narrow(0, part.first, part.size));
}

/// Which entries of the whole parameter a tensor rank's are.
init::Slice slice_of(const spec::Placement& placement, const spec::Parameter& whole) {
  if (placement.dimension < 0) return {};
  const std::int64_t columns = whole.size / whole.shape.front();
  if (placement.dimension == 1) return {placement.begin, placement.count, columns};
  return {placement.begin * columns, columns, columns};
}

/// Views of the gradients of parameters that several tensor ranks hold.
void share_gradients(ParameterBuffers& buffers, std::int64_t tensor_ranks) {
  if (std::none_of(buffers.placements.begin(), buffers.placements.end(),
                   [](const spec::Placement& each) { return each.shared(); }))
    return;
  const auto blocks = static_cast<std::size_t>(buffers.inventory.blocks);
  buffers.of_all_tensor_ranks.resize(blocks), buffers.of_holders.resize(blocks);
  for (std::size_t i = 0; i < buffers.placements.size(); ++i) {
    const spec::Placement& placement = buffers.placements[i];
    const at::Tensor view = owned_of(buffers, buffers.gradients, i);
    if (!placement.shared() || !view.defined()) continue;
    auto& shared = placement.holders == tensor_ranks ? buffers.of_all_tensor_ranks : buffers.of_holders;
    shared[static_cast<std::size_t>(buffers.inventory.parameters[i].block)].push_back(view);
    if (placement.holder > 0) buffers.counted_elsewhere.push_back(view);
  }
}

/// Each view becomes its sum over the ranks. Every rank calls for every block, whatever it owns of it.
void sum_over(std::vector<at::Tensor> views, const at::Tensor& like, Communicator& ranks) {
  views.push_back(at::zeros({1}, like.options()));
  const at::Tensor sum = sum_in_rank_order(at::cat(views), ranks);
  std::int64_t begin = 0;
  for (const at::Tensor& view : views) {
    view.copy_(sum.narrow(0, begin, view.numel()));
    begin += view.numel();
  }
}
}  // namespace

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return at::kDouble;
    case Dtype::f32:
      return at::kFloat;
    case Dtype::bf16:
      return at::kBFloat16;
  }
  throw std::invalid_argument("not a compute dtype");
}

std::vector<const ParameterBuffers*> ParameterBuffers::sets() const {
  std::vector<const ParameterBuffers*> all = {this};
  for (const ParameterBuffers& other : others) all.push_back(&other);
  return all;
}

std::vector<ParameterBuffers*> ParameterBuffers::sets() {
  std::vector<ParameterBuffers*> all = {this};
  for (ParameterBuffers& other : others) all.push_back(&other);
  return all;
}

std::int64_t ParameterBuffers::bytes() const {
  std::int64_t sum = 0;
  for (const ParameterBuffers* set : sets()) {
    for (const at::Tensor* buffer : {&set->weights, &set->gradients, &set->moment1, &set->moment2,
                                     &set->gains.values, &set->router_biases})
      if (buffer->defined()) sum += static_cast<std::int64_t>(buffer->nbytes());
    if (!set->master.is_same(set->weights)) sum += static_cast<std::int64_t>(set->master.nbytes());
  }
  return sum;
}

namespace {
ParameterBuffers flat_buffers(spec::ParameterSet&& set, Dtype dtype, at::Device device, Dtype states) {
  ParameterBuffers buffers;
  buffers.partition = std::move(set.partition);
  buffers.inventory = buffers.partition.inventory;
  buffers.placements = std::move(set.placements);
  buffers.shard_rank = set.state.number;
  const bool shards_weights = set.layout.shards_weights();
  const auto zeros = [&](Dtype element, bool shards) {
    return at::zeros({shards ? buffers.partition.shard_size : buffers.inventory.flat_size},
                     at::TensorOptions().dtype(scalar_type(element)).device(device));
  };
  const Dtype state = dtype == Dtype::bf16 ? states : dtype;
  buffers.weights = zeros(dtype, shards_weights);
  buffers.gradients = zeros(dtype == Dtype::bf16 ? Dtype::f32 : dtype, shards_weights);
  buffers.master = state != dtype ? zeros(state, true) : buffers.weights;
  buffers.moment1 = zeros(state, true);
  buffers.moment2 = zeros(state, true);
  if (dtype == Dtype::bf16)
    buffers.gains = whole_vectors(buffers, buffers.master, spec::norm_gains(buffers.inventory), at::kFloat);
  return buffers;
}

void initialise(ParameterBuffers& set, const spec::Inventory& all, const spec::ModelSpec& model,
                std::uint64_t seed) {
  const bool whole = set.whole(set.master);
  for (std::size_t i = 0; i < set.placements.size(); ++i) {
    const spec::Parameter& own = set.inventory.parameters[i];
    const spec::Placement& placement = set.placements[i];
    const spec::Parameter& of_model = all.parameters[placement.number];
    const at::Tensor values =
        whole ? set.master.narrow(0, own.offset, own.size) : at::zeros({own.size}, set.master.options());
    const std::int64_t rows = placement.dimension == 0 ? placement.count : own.shape.front();
    init::fill(values.narrow(0, 0, rows * (own.size / own.shape.front())), of_model,
               static_cast<std::int64_t>(placement.number), model, seed, slice_of(placement, of_model));
    if (whole) continue;
    store_own(set, set.master, own, values);
    if (!set.master.is_same(set.weights)) store_own(set, set.weights, own, values);
  }
  if (whole && !set.master.is_same(set.weights)) set.weights.copy_(set.master);
}
}  // namespace

ParameterBuffers allocate(const spec::ModelSpec& model, Dtype dtype, at::Device device, Dtype states,
                          const spec::Place& place) {
  spec::Share share = spec::share(model, place);
  std::vector<ParameterBuffers> sets;
  for (spec::ParameterSet& set : share.sets) {
    sets.push_back(flat_buffers(std::move(set), dtype, device, states));
    share_gradients(sets.back(), place.tensor_ranks);
  }
  ParameterBuffers buffers = std::move(sets.front());
  buffers.others.assign(std::make_move_iterator(sets.begin() + 1), std::make_move_iterator(sets.end()));
  buffers.model = spec::inventory(model);
  if (model.experts && model.experts->router_bias)
    buffers.router_biases =
        at::zeros({model.sparse_layers(), model.experts->count}, buffers.gradients.options());
  return buffers;
}

void initialise(ParameterBuffers& buffers, const spec::ModelSpec& model, std::uint64_t seed) {
  if (buffers.router_biases.defined()) buffers.router_biases.zero_();
  for (ParameterBuffers* set : buffers.sets()) initialise(*set, buffers.model, model, seed);
}

WholeVectors whole_vectors(const ParameterBuffers& buffers, const at::Tensor& buffer, spec::Inventory offsets,
                           at::ScalarType type) {
  WholeVectors out;
  if (offsets.flat_size > 0) out.values = at::zeros({offsets.flat_size}, buffer.options().dtype(type));
  for (const spec::Parameter& vector : offsets.parameters) {
    const Part part = owned_part(buffers, buffer, buffers.inventory.at(vector.name));
    if (part.size == 0) continue;
    out.own.push_back(out.values.narrow(0, vector.offset + part.first, part.size));
    out.sources.push_back(buffer.narrow(0, part.begin, part.size));
  }
  out.offsets = std::move(offsets);
  return out;
}

void refresh(const WholeVectors& vectors) {
  if (!vectors.own.empty()) at::_foreach_copy_(vectors.own, vectors.sources);
}

void gather(const WholeVectors& vectors, Communicator& shard) {
  if (vectors.values.defined() && shard.size() > 1) vectors.values.zero_();
  refresh(vectors);
  if (vectors.values.defined() && shard.size() > 1) shard.all_reduce_sum(vectors.values);
}

BlockWeights weight_views(const ParameterBuffers& buffers, const at::Tensor& flat,
                          const spec::Inventory& offsets, const spec::ModelSpec& model, std::int64_t block) {
  const WholeVectors& gains = buffers.gains;
  BlockWeights weights = gains.values.defined()
                             ? views(flat, offsets, gains.values, gains.offsets, model, block)
                             : views(flat, offsets, flat, offsets, model, block);
  if (weights.decoder.router_bias.defined())
    weights.decoder.router_bias = buffers.router_biases[model.sparse_before(block - 1)];
  return weights;
}

at::Tensor router_bias_of(const ParameterBuffers& buffers, std::size_t index) {
  const std::vector<spec::Parameter>& all = buffers.model.parameters;
  if (all.at(index).learned()) return {};
  const auto of_router = [](const spec::Parameter& parameter) { return !parameter.learned(); };
  return buffers
      .router_biases[std::count_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(index), of_router)];
}

at::Tensor owned(const ParameterBuffers& buffers, const at::Tensor& buffer, const spec::Partition::Run& run) {
  return buffer.narrow(0, buffers.whole(buffer) ? run.begin : run.shard_begin, run.size);
}

at::Tensor owned_of(const ParameterBuffers& buffers, const at::Tensor& buffer, std::size_t index) {
  const Part part = owned_part(buffers, buffer, buffers.inventory.parameters.at(index));
  return part.size == 0 ? at::Tensor() : buffer.narrow(0, part.begin, part.size);
}

at::Tensor owned(const ParameterBuffers& buffers, const at::Tensor& buffer, std::int64_t block) {
  const auto range = buffers.partition.owned(block, buffers.shard_rank);
  return buffer.narrow(0,
                       buffers.whole(buffer)
                           ? range.begin
                           : buffers.partition.blocks[static_cast<std::size_t>(block)].shard_begin,
                       range.end - range.begin);
}

at::Tensor owned_sum_of_squares(const ParameterBuffers& buffers) {
  at::Tensor sum;
  for (const auto& run : buffers.partition.runs(buffers.shard_rank)) {
    const at::Tensor part = clip_grad_norm::sum_of_squares(owned(buffers, buffers.gradients, run));
    sum = sum.defined() ? sum + part : part;
  }
  if (!buffers.counted_elsewhere.empty())
    sum = sum - clip_grad_norm::sum_of_squares(at::cat(buffers.counted_elsewhere));
  return sum;
}

at::Tensor sum_in_rank_order(const at::Tensor& own, Communicator& ranks) {
  const at::Tensor all = at::empty({ranks.size(), own.numel()}, own.options());
  ranks.wait(ranks.begin_all_gather(own.view({-1}), all.view({-1})));
  at::Tensor sum = all[0];
  for (int rank = 1; rank < ranks.size(); ++rank) sum.add_(all[rank]);
  return sum.view(own.sizes());
}

void sum_shared_gradients(const ParameterBuffers& buffers, Communicator& tensor, Communicator& holders) {
  for (const ParameterBuffers* set : buffers.sets())
    for (std::size_t block = 0; block < set->of_all_tensor_ranks.size(); ++block) {
      sum_over(set->of_all_tensor_ranks[block], set->gradients, tensor);
      if (holders.size() > 1 && holders.size() < tensor.size())
        sum_over(set->of_holders[block], set->gradients, holders);
    }
}

std::string first_non_finite(const spec::Inventory& inventory, const at::Tensor& gradients,
                             std::int64_t first) {
  // A sum of squares is finite only if every term is; it costs one pass and no temporary of the range's size.
  if (std::isfinite(clip_grad_norm::sum_of_squares(gradients).item<double>())) return "";
  for (const spec::Parameter& parameter : inventory.parameters) {
    const std::int64_t begin = std::max(parameter.offset, first),
                       end = std::min(parameter.offset + parameter.size, first + gradients.numel());
    if (begin < end && !at::isfinite(gradients.narrow(0, begin - first, end - begin)).all().item<bool>())
      return parameter.name;
  }
  return "";
}

std::string first_non_finite_gradient(const ParameterBuffers& buffers) {
  for (const auto& run : buffers.partition.runs(buffers.shard_rank)) {
    std::string name = first_non_finite(buffers.inventory, owned(buffers, buffers.gradients, run), run.begin);
    if (!name.empty()) return name;
  }
  return "";
}

}  // namespace assay::impl
