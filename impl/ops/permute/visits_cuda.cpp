#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/permute/visits.hpp"
#include "impl/ops/permute/visits_launch.hpp"

namespace assay::impl::permute::cuda {

using impl::cuda::stream;

namespace {
const std::int32_t* words_of(const at::Tensor& x) {
  return static_cast<const std::int32_t*>(x.const_data_ptr());
}
rules::ChoiceView view_of(const Choices& c) {
  return {words_of(c.experts),
          c.rows.defined() ? words_of(c.rows) : nullptr,
          c.experts.size(0),
          c.experts.size(1),
          c.ranks,
          c.each};
}
}  // namespace

at::Tensor visited(const Choices& choices) {
  const rules::ChoiceView of = view_of(choices);
  at::Tensor out = at::empty({of.N, of.ranks}, choices.experts.options());
  launch_visited(of, out.data_ptr<std::int32_t>(), stream());
  return out;
}

void count_visits(const Choices& choices, const Order& by_rank, const at::Tensor& expert_ends,
                  const at::Tensor& counts) {
  launch_count_visits(words_of(by_rank.ends), words_of(expert_ends), choices.ranks, choices.each,
                      counts.data_ptr<std::int32_t>(), stream());
}

at::Tensor packed_choices(const Choices& choices, const Order& by_rank) {
  const rules::ChoiceView of = view_of(choices);
  const int words = choices.weights.element_size() == 8 ? 2 : 1;
  const std::int64_t most = by_rank.slots.size(0);
  at::Tensor out = at::empty({most, of.A * (words + 1)}, choices.experts.options());
  launch_pack(of, words_of(choices.weights), words, words_of(by_rank.slots), words_of(by_rank.ends), most,
              out.data_ptr<std::int32_t>(), stream());
  return out;
}

Arrived unpacked_choices(const at::Tensor& packed, at::ScalarType weights, std::int64_t A) {
  const std::int64_t M = packed.size(0);
  Arrived out{at::empty({M, A}, packed.options()), at::empty({M, A}, packed.options().dtype(weights))};
  launch_unpack(M, A, c10::elementSize(weights) == 8 ? 2 : 1, words_of(packed),
                static_cast<std::int32_t*>(out.weights.mutable_data_ptr()),
                out.experts.data_ptr<std::int32_t>(), stream());
  return out;
}

at::Tensor by_choice(const at::Tensor& of_visits, const Choices& choices, const Order& by_rank) {
  const rules::ChoiceView of = view_of(choices);
  at::Tensor out = at::empty({of.N, of.A}, of_visits.options());
  launch_by_choice(of, words_of(by_rank.rows), of_visits.element_size() == 8, of_visits.const_data_ptr(),
                   out.mutable_data_ptr(), stream());
  return out;
}

}  // namespace assay::impl::permute::cuda
