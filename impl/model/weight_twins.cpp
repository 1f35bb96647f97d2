#include "impl/model/weight_twins.hpp"

namespace assay::impl {

at::Tensor amax_over(Communicator* experts, const at::Tensor& x) {
  if (experts == nullptr || experts->size() == 1) return {};
  at::Tensor most = quantise::amax(x);
  experts->all_reduce_max(most);
  return most;
}

const WeightTwins::Block& WeightTwins::of(std::int64_t block, const DecoderWeights& weights,
                                          const spec::LinearPrecision& linear, Communicator* experts) {
  const auto at = static_cast<std::size_t>(block - 1);
  Block& twins = blocks_.at(at);
  if (current_[at]) return twins;
  const auto how = spec::quantise::quantisation(linear.recipe, spec::quantise::Role::weight);
  constexpr auto fields = spec::step::linear_fields<DecoderWeights>();
  constexpr std::size_t dense = spec::step::first_linear_of_experts;
  for (std::size_t i = 0; i < (linear.experts ? fields.size() : dense); ++i)
    if (const WeightMatrix& weight = weights.*fields[i]; weight.defined())
      quantise::quantise_into(weight.values(), how, twins[i],
                              amax_over(i < dense ? nullptr : experts, weight.values()));
  current_[at] = true;
  return twins;
}

}  // namespace assay::impl
