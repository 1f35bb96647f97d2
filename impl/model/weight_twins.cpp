#include "impl/model/weight_twins.hpp"

namespace assay::impl {

const WeightTwins::Block& WeightTwins::of(std::int64_t block, const DecoderViews& views,
                                          spec::quantise::Recipe recipe) {
  const auto at = static_cast<std::size_t>(block - 1);
  Block& twins = blocks_.at(at);
  if (current_[at]) return twins;
  const auto how = spec::quantise::quantisation(recipe, spec::quantise::Role::weight);
  const auto again = [&](const at::Tensor& weight, quantise::Twins& into) {
    quantise::quantise_into(weight, how, into);
  };
  again(views.qkv, twins.qkv);
  again(views.output, twins.output);
  again(views.gate_up, twins.gate_up);
  again(views.down, twins.down);
  current_[at] = true;
  return twins;
}

}  // namespace assay::impl
