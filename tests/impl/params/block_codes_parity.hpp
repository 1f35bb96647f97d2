#pragma once
// Codes that ranks gather against those of the whole matrix, on any ranks and device.
#include <cmath>
#include <memory>
#include <string>

#include "impl/params/slices.hpp"
#include "tests/impl/ops/parity/quantise_parity.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::parity {

using spec::quantise::Recipe;

inline const spec::LinearPrecision fp8_linears{.recipe = Recipe::fp8_tensor};
inline const auto of_weights = spec::quantise::quantisation(Recipe::fp8_tensor, spec::quantise::Role::weight);

/// Values of a model's parameters, of sizes of their own, the largest of each at one place.
struct DrawnWeights {
  std::uint64_t seed;
  double odd = 1;  ///< what stands in one place of each matrix of block 1: infinite, NaN

  at::Tensor of(const spec::Parameter& parameter) const {
    const std::uint64_t own = seed + static_cast<std::uint64_t>(parameter.offset);
    at::Tensor values = tests::normal(parameter.shape, own, at::kDouble);
    values.mul_(std::ldexp(1.0, static_cast<int>(own % 9) - 4));
    if (!parameter.matrix()) return values;
    values.view(-1)[static_cast<std::int64_t>(own % static_cast<std::uint64_t>(parameter.size))] *= 300;
    if (parameter.block == 1) values.view(-1)[parameter.size / 2] *= odd;
    return values;
  }
  void store_in(const ParameterBuffers& buffers) const {
    const auto places = destinations(buffers, &ParameterBuffers::master);
    for (std::size_t i = 0; i < buffers.model.parameters.size(); ++i) {
      const spec::Slice whole = spec::whole_slice(buffers.model.parameters[i].shape);
      places[i].put(whole, of(buffers.model.parameters[i]).view({whole.rows, whole.columns}));
    }
  }
};

/// A rank's parameters in a layout, with these values.
struct Rank {
  Rank(const spec::ModelSpec& model, Dtype dtype, at::Device device, Communicator& communicator,
       const spec::Layout& layout, const spec::LinearPrecision& linear, const DrawnWeights& values)
      : groups(communicator, layout),
        buffers(allocate(model, dtype, device, Dtype::f32, {.layout = layout, .rank = communicator.rank()})),
        parameters(make_parameters(buffers, model, groups, buffers.gradients.scalar_type(), linear)) {
    change(values);
  }
  void change(const DrawnWeights& values) {
    values.store_in(buffers);
    parameters->weights_changed();
  }

  LayoutGroups groups;
  ParameterBuffers buffers;
  std::unique_ptr<ParameterLayout> parameters;
};

/// What differs between the codes, scales and vectors of `sharded` and those of the whole block, quantised.
inline std::string difference(const DecoderWeights& sharded, const DecoderWeights& whole) {
  std::string found;
  std::apply(
      [&](const auto&... field) {
        const auto compare = [&](const auto& ours, const auto& theirs, const char* name_or_none) {
          if (!ours.defined() && !theirs.defined()) return;
          const std::string name = name_or_none ? name_or_none : "a matrix named by its role";
          if constexpr (std::is_same_v<decltype(ours), const WeightMatrix&>) {
            const quantise::Quantised expected =
                quantise::quantise(theirs.values(), of_weights, quantise::Orientation::rows).rows;
            if (!ours.codes().defined())
              found += name + " is not in FP8; ";
            else if (!at::equal(bytes_of(ours.codes().scales), bytes_of(expected.scales)))
              found += name + " has another scale; ";
            else if (!at::equal(bytes_of(ours.codes().codes), bytes_of(expected.codes)))
              found += name + " has other codes; ";
          } else if (ours.defined() != theirs.defined() || (ours.defined() && !at::equal(ours, theirs))) {
            found += name + " differs; ";
          }
        };
        (compare(sharded.*field.member, whole.*field.member, field.first.name), ...);
      },
      spec::step::decoder_fields<DecoderWeights>());
  return found;
}

}  // namespace assay::impl::parity
