#pragma once
// In which precision the linears of decoder blocks compute, and where FP8 twins of their weights are made.
// (spec/ops/quantise/quantise.md)
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "spec/error.hpp"
#include "spec/model/block_matrices.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/quantise/quantise.hpp"

namespace assay::spec {

namespace quantise {
/// Extents of a linear are multiples of it (quantise_c3); 1 where nothing is quantised.
constexpr std::int64_t extent_unit(Recipe recipe) {
  return recipe == Recipe::fp8_block ? 128 : recipe == Recipe::mxfp8 ? 32 : recipe == Recipe::none ? 1 : 16;
}
}  // namespace quantise

/// When weights are quantised. `step`: both orientations once after each update, kept (2 bytes a weight).
/// `use`: the orientation that a GEMM reads, before each GEMM.
enum class QuantiseWeights { step, use };

struct LinearPrecision {
  quantise::Recipe recipe = quantise::Recipe::none;
  std::vector<std::int64_t> unquantised = {};  ///< decoder blocks, from 1, that compute in the compute type
  QuantiseWeights weights = QuantiseWeights::use;
  /// Whether routed experts compute their outputs and the gradients of their inputs in `recipe`, which is
  /// fp8_tensor. Gradients of their weights are computed from values.
  bool experts = false;

  /// Of the block linears of block `block`: 0 embedding, 1..L decoder, L+1 head.
  quantise::Recipe of(std::int64_t block, std::int64_t layers) const {
    const bool quantised = block >= 1 && block <= layers &&
                           std::find(unquantised.begin(), unquantised.end(), block) == unquantised.end();
    return quantised ? recipe : quantise::Recipe::none;
  }
  /// Of the routed experts of block `block`.
  quantise::Recipe of_experts(std::int64_t block, std::int64_t layers) const {
    return experts ? of(block, layers) : quantise::Recipe::none;
  }
  /// Whether a layout that gathers blocks may bring the codes of their linears instead of the values
  /// (spec/parallel/gathered_codes.hpp).
  bool gathers_codes() const {
    return recipe != quantise::Recipe::none && weights == QuantiseWeights::use &&
           quantise::quantisation(recipe, quantise::Role::weight).scaling == quantise::Scaling::tensor;
  }
  /// The same, from 0 as layers are numbered in names of parameters.
  std::vector<std::int64_t> unquantised_layers() const {
    std::vector<std::int64_t> layers = unquantised;
    for (std::int64_t& layer : layers) --layer;
    return layers;
  }
  bool operator==(const LinearPrecision&) const = default;
};

/// "fp8_tensor: activations e4m3, weights e4m3, gradients e5m2; not in layers 0, 31; weights quantised after
/// each update"; empty where nothing is quantised. `codes`: those are what is gathered.
inline std::string describe(const LinearPrecision& linear, bool codes = false) {
  using quantise::quantisation, quantise::Role;
  if (linear.recipe == quantise::Recipe::none) return "";
  const auto format = [&](Role role) {
    return std::string(to_string(quantisation(linear.recipe, role).format));
  };
  std::string text = std::string(to_string(linear.recipe)) + ": activations " + format(Role::activation) +
                     ", weights " + format(Role::weight) + ", gradients " + format(Role::gradient);
  if (linear.experts) text += "; routed experts too, but for gradients of their weights";
  std::string layers;
  for (const std::int64_t layer : linear.unquantised_layers())
    layers += (layers.empty() ? "; not in layers " : ", ") + std::to_string(layer);
  return text + layers + "; weights quantised " +
         (codes                                     ? "in their shards and gathered as codes"
          : linear.weights == QuantiseWeights::step ? "after each update"
                                                    : "before each GEMM");
}

/// Of the linears of layer `layer`, from 0, that a recipe quantises.
inline std::vector<Extents> block_linears(const ModelSpec& model, std::int64_t layer) {
  return matrices_in(InFp8::linears, model, model.sparse(layer));
}

/// Of one routed expert's linears, of a model that has experts.
inline std::vector<Extents> expert_linears(const ModelSpec& model) {
  return matrices_in(InFp8::experts, model, true);
}

/// Whether FP8 GEMMs take every block linear of `model` on N tokens. Errors: SpecError quantise_c3.
inline void check(const LinearPrecision& linear, const ModelSpec& model, std::int64_t N) {
  if (linear.recipe == quantise::Recipe::none) return;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const auto& [out, in] : block_linears(model, layer)) quantise::check(linear.recipe, N, in, out);
  if (!linear.experts) return;
  const std::int64_t unit = quantise::extent_unit(linear.recipe);
  for (const auto& [out, in] : expert_linears(model))  // any number of rows
    // quantise_c3
    require(in % unit == 0 && out % unit == 0, "quantise_c3", [&] {
      return "experts.width=" + std::to_string(model.experts->width) +
             " and width=" + std::to_string(model.width) + " of routed experts in " +
             to_string(linear.recipe) + ": both are to be multiples of " + std::to_string(unit) +
             ", or experts left out of FP8";
    });
}

}  // namespace assay::spec
