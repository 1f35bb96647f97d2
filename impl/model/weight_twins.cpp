#include "impl/model/weight_twins.hpp"

namespace assay::impl {

const WeightTwins::Block& WeightTwins::of(std::int64_t block, const DecoderWeights& weights,
                                          spec::quantise::Recipe recipe) {
  const auto at = static_cast<std::size_t>(block - 1);
  Block& twins = blocks_.at(at);
  if (current_[at]) return twins;
  const auto how = spec::quantise::quantisation(recipe, spec::quantise::Role::weight);
  const auto again = [&](const WeightMatrix& weight, quantise::Twins& into) {
    quantise::quantise_into(weight.values(), how, into);
  };
  again(weights.qkv, twins.qkv);
  again(weights.output, twins.output);
  again(weights.gate_up, twins.gate_up);
  again(weights.down, twins.down);
  current_[at] = true;
  return twins;
}

}  // namespace assay::impl
