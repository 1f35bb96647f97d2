#include "impl/model/weight_twins.hpp"

namespace assay::impl {

const WeightTwins::Block& WeightTwins::of(std::int64_t block, const DecoderWeights& weights,
                                          spec::quantise::Recipe recipe, bool experts) {
  const auto at = static_cast<std::size_t>(block - 1);
  Block& twins = blocks_.at(at);
  if (current_[at]) return twins;
  const auto how = spec::quantise::quantisation(recipe, spec::quantise::Role::weight);
  const auto make = [&](const auto& fields, std::size_t first) {
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (const WeightMatrix& weight = weights.*fields[i]; weight.defined())
        quantise::quantise_into(weight.values(), how, twins[first + i]);
  };
  constexpr auto linears = spec::step::linear_fields<DecoderWeights>();
  make(linears, 0);
  if (experts) make(spec::step::expert_fields<DecoderWeights>(), linears.size());
  current_[at] = true;
  return twins;
}

}  // namespace assay::impl
