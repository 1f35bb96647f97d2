#pragma once
// A state of known values, held by ranks in any layout: without a step of training.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "impl/params/slices.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/parameter_sets.hpp"

namespace assay::tests {

/// How ranks hold a state.
struct StateLayout {
  spec::Layout layout = {};
  std::int64_t tensor = 1, expert = 1;
  spec::Place place(std::int64_t rank) const { return {layout, tensor, expert, rank}; }
  int ranks() const { return static_cast<int>(layout.ranks * tensor); }
  std::string name() const {
    return std::string(spec::to_string(layout.data)) + " of " + std::to_string(layout.ranks) +
           " in shards of " + std::to_string(layout.shard_ranks) + ", tensor " + std::to_string(tensor) +
           ", expert " + std::to_string(expert);
  }
};

/// Of `ranks` data ranks.
inline std::vector<spec::Layout> data_layouts(std::int64_t ranks) {
  using spec::DataParallel;
  std::vector<spec::Layout> out = {spec::layout_of(DataParallel::replicate, ranks)};
  if (ranks == 1) return out;
  out.push_back(spec::layout_of(DataParallel::zero1, ranks));
  out.push_back(spec::layout_of(DataParallel::shard, ranks));
  for (std::int64_t shard = 2; shard < ranks; ++shard)
    if (ranks % shard == 0) out.push_back(spec::layout_of(DataParallel::hybrid, ranks, shard));
  return out;
}

/// Every layout of at most `most` ranks that the model can be held in.
inline std::vector<StateLayout> state_layouts(const spec::ModelSpec& model, std::int64_t most) {
  std::vector<StateLayout> out;
  for (std::int64_t data = 1; data <= most; ++data)
    for (const spec::Layout& layout : data_layouts(data)) {
      for (std::int64_t tensor = 1; data * tensor <= most; ++tensor)
        for (std::int64_t expert = 1; expert <= data * tensor; ++expert) try {
            spec::check_tensor_ranks(model, tensor, 0);
            spec::check_expert_ranks(model, expert, layout, tensor, tensor);
            out.push_back({layout, tensor, expert});
          } catch (const SpecError&) {
          }
    }
  return out;
}

inline constexpr impl::Buffer state_parts[] = {
    &impl::ParameterBuffers::master, &impl::ParameterBuffers::moment1, &impl::ParameterBuffers::moment2};

/// The values of one part of a parameter, in the shape of a matrix, rounded to `type`.
inline at::Tensor state_values(const spec::Parameter& parameter, std::size_t part, std::uint64_t seed,
                               at::ScalarType type) {
  const spec::Slice whole = spec::whole_slice(parameter.shape);
  const std::uint64_t own = seed * 1000003 + static_cast<std::uint64_t>(parameter.offset) * 8 + part;
  return at::randn({whole.rows, whole.columns}, at::detail::createCPUGenerator(own), at::kDouble).to(type);
}

/// What one rank holds.
struct RankState {
  RankState(const spec::ModelSpec& model, impl::Communicator& communicator, const StateLayout& held,
            Dtype dtype, Dtype states = Dtype::f32)
      : groups(communicator, spec::groups_of(model, held.place(communicator.rank()))),
        buffers(impl::allocate(model, dtype, at::kCPU, states, held.place(communicator.rank()))) {}

  void fill(std::uint64_t seed) {
    for (std::size_t part = 0; part < std::size(state_parts); ++part) {
      const auto places = impl::destinations(buffers, state_parts[part]);
      for (std::size_t i = 0; i < places.size(); ++i)
        places[i].put(spec::whole_slice(buffers.model.parameters[i].shape), values(i, part, seed));
    }
  }
  /// Name of the first parameter that is not what `fill` gave it; empty: all are.
  std::string first_other(std::uint64_t seed) const {
    for (std::size_t part = 0; part < std::size(state_parts); ++part)
      for (const impl::HeldSlice& held : impl::held_slices(buffers, state_parts[part]))
        if (!equals(held, values(held.number, part, seed))) return buffers.model.parameters[held.number].name;
    for (const impl::HeldSlice& held : impl::held_slices(buffers, &impl::ParameterBuffers::weights))
      if (!equals(held, values(held.number, 0, seed).to(buffers.weights.scalar_type())))
        return "working weights of " + buffers.model.parameters[held.number].name;
    return "";
  }
  /// Bytes of all that it holds of the three parts: of the working weights where they are wider than the
  /// master weights.
  std::int64_t needed_bytes() const {
    std::int64_t bytes = 0;
    for (const impl::Buffer part : state_parts) {
      const auto places = impl::destinations(buffers, part);
      for (std::size_t i = 0; i < places.size(); ++i)
        for (const spec::Slice& slice : places[i].read) bytes += slice.size() * type_of(i).itemsize();
    }
    return bytes;
  }

  impl::LayoutGroups groups;
  impl::ParameterBuffers buffers;

 private:
  caffe2::TypeMeta type_of(std::size_t number) const {
    const at::Tensor bias = impl::router_bias_of(buffers, number);
    return (bias.defined() ? bias : buffers.master).dtype();
  }
  at::Tensor values(std::size_t number, std::size_t part, std::uint64_t seed) const {
    return state_values(buffers.model.parameters[number], part, seed, type_of(number).toScalarType());
  }
  static bool equals(const impl::HeldSlice& held, const at::Tensor& whole) {
    const spec::Slice& at = held.slice;
    return at::equal(held.values, whole.narrow(0, at.row, at.rows).narrow(1, at.column, at.columns));
  }
};

}  // namespace assay::tests
