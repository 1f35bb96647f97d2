#include "impl/model/weight_twins.hpp"

namespace assay::impl {

const WeightTwins::Block& WeightTwins::of(std::int64_t block, const DecoderWeights& weights,
                                          spec::quantise::Recipe recipe, bool experts) {
  const auto at = static_cast<std::size_t>(block - 1);
  Block& twins = blocks_.at(at);
  if (current_[at]) return twins;
  const auto how = spec::quantise::quantisation(recipe, spec::quantise::Role::weight);
  constexpr auto fields = spec::step::linear_fields<DecoderWeights>();
  const std::size_t some = experts ? fields.size() : spec::step::first_linear_of_experts;
  for (std::size_t i = 0; i < some; ++i)
    if (const WeightMatrix& weight = weights.*fields[i]; weight.defined())
      quantise::quantise_into(weight.values(), how, twins[i]);
  current_[at] = true;
  return twins;
}

}  // namespace assay::impl
