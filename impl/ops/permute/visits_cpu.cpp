#include <ATen/ATen.h>

#include "impl/ops/permute/visit_rules.hpp"
#include "impl/ops/permute/visits.hpp"

namespace assay::impl::permute::cpu {

namespace {
rules::ChoiceView view_of(const Choices& c) {
  return {c.experts.const_data_ptr<std::int32_t>(),
          c.rows.defined() ? c.rows.const_data_ptr<std::int32_t>() : nullptr,
          c.experts.size(0),
          c.experts.size(1),
          c.ranks,
          c.each};
}
const std::int32_t* words_of(const at::Tensor& x) {
  return static_cast<const std::int32_t*>(x.const_data_ptr());
}
}  // namespace

at::Tensor visited(const Choices& choices) {
  const rules::ChoiceView of = view_of(choices);
  at::Tensor out = at::empty({of.N, of.ranks}, choices.experts.options());
  auto* to = out.data_ptr<std::int32_t>();
  for (std::int64_t n = 0; n < of.N; ++n)
    for (std::int64_t r = 0; r < of.ranks; ++r) to[n * of.ranks + r] = of.visited(n, r);
  return out;
}

void count_visits(const Choices& choices, const Order& by_rank, const at::Tensor& expert_ends,
                  const at::Tensor& counts) {
  for (std::int64_t r = 0; r < choices.ranks; ++r)
    rules::count_visits(words_of(by_rank.ends), words_of(expert_ends), choices.each, r,
                        counts.data_ptr<std::int32_t>());
}

at::Tensor packed_choices(const Choices& choices, const Order& by_rank) {
  const rules::ChoiceView of = view_of(choices);
  const bool wide = choices.weights.element_size() == 8;
  const std::int64_t columns = of.A * (wide ? 3 : 2);
  at::Tensor out = at::empty({by_rank.slots.size(0), columns}, choices.experts.options());
  const std::int64_t visits = words_of(by_rank.ends)[of.ranks - 1];
  for (std::int64_t row = 0; row < visits; ++row)
    for (std::int64_t a = 0; a < of.A; ++a)
      (wide ? rules::pack<2> : rules::pack<1>)(of, words_of(choices.weights), words_of(by_rank.slots)[row], a,
                                               out.data_ptr<std::int32_t>() + row * columns);
  return out;
}

Arrived unpacked_choices(const at::Tensor& packed, at::ScalarType weights, std::int64_t A) {
  const std::int64_t M = packed.size(0), words = c10::elementSize(weights) == 8 ? 2 : 1;
  Arrived out{at::empty({M, A}, packed.options()), at::empty({M, A}, packed.options().dtype(weights))};
  auto *experts = out.experts.data_ptr<std::int32_t>(),
       *to = static_cast<std::int32_t*>(out.weights.mutable_data_ptr());
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t a = 0; a < A; ++a)
      (words == 2 ? rules::unpack<2> : rules::unpack<1>)(words_of(packed) + m * packed.size(1), A, a,
                                                         to + (m * A + a) * words, experts + m * A + a);
  return out;
}

at::Tensor by_choice(const at::Tensor& of_visits, const Choices& choices, const Order& by_rank) {
  const rules::ChoiceView of = view_of(choices);
  at::Tensor out = at::empty({of.N, of.A}, of_visits.options());
  const auto fill = [&](auto element) {
    using M = decltype(element);
    for (std::int64_t s = 0; s < of.N * of.A; ++s)
      out.data_ptr<M>()[s] = rules::by_choice(of, words_of(by_rank.rows), of_visits.const_data_ptr<M>(), s);
  };
  of_visits.scalar_type() == at::kDouble ? fill(double{}) : fill(float{});
  return out;
}

}  // namespace assay::impl::permute::cpu
