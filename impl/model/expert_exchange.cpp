// What expert ranks send each other: tokens to the ranks that hold their experts, and the experts' results
// back. A token goes to a rank once, however many of its experts are there, and comes back as the sum over
// them. Every exchange is a copy, and what arrives is in the order of the ranks that it came from: a run
// repeats bit for bit.
#include <ATen/ATen.h>

#include <utility>

#include "impl/model/tensor_ops.hpp"

namespace assay::impl {

namespace {
using Counts = std::vector<std::int64_t>;

Counts column(const at::Tensor& counts, std::int64_t of) {
  const auto entries = counts.accessor<std::int32_t, 2>();
  Counts out;
  for (std::int64_t r = 0; r < counts.size(0); ++r) out.push_back(entries[r][of]);
  return out;
}

std::int64_t sum_of(const Counts& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return sum;
}

/// Begins to send the first rows of `from`, as many as `sent` says, and to receive as many as `received`.
TensorOps::Pending<at::Tensor> begin_rows(Communicator& ranks, at::Tensor from, const Counts& sent,
                                          const Counts& received) {
  std::vector<std::int64_t> shape = from.sizes().vec();
  shape.front() = sum_of(received);
  at::Tensor into = at::empty(shape, from.options());
  const auto ticket = ranks.begin_all_to_all(from.narrow(0, 0, sum_of(sent)), sent, into, received);
  return {std::move(into), std::move(from), ticket, &ranks};
}
}  // namespace

permute::Choices TensorOps::choices(const Routing& routing) const {
  return {.experts = routing.choice.experts,
          .rows = drops() ? routing.order.rows : at::Tensor(),
          .weights = routing.choice.weights,
          .ranks = expert_ranks(),
          .each = model().experts->count / expert_ranks()};
}

/// Begins to exchange how many tokens and choices go where. Only the routing says how many arrive, and the
/// host allocates what arrives, so it has to learn the numbers; what they do not decide is made meanwhile.
void TensorOps::begin_routing(Routing& routing) {
  Communicator& ranks = *context_.experts;
  const permute::Choices chosen = choices(routing);
  Visits& visits = *(routing.visits = std::make_shared<Visits>());
  visits.by_rank = permute::by_rank(chosen);
  visits.counts = at::empty({2, ranks.size(), 2}, chosen.experts.options());
  permute::count_visits(chosen, visits.by_rank, routing.order.ends, visits.counts[0]);
  const Counts one_of_each(static_cast<std::size_t>(ranks.size()), 1);
  visits.counted = ranks.begin_all_to_all(visits.counts[0], one_of_each, visits.counts[1], one_of_each);
  visits.packed = permute::packed_choices(chosen, visits.by_rank);
}

/// Begins to send the choices of the tokens that go elsewhere. A rank that is gone is an error here, and no
/// wait without end.
TensorOps::Pending<at::Tensor> TensorOps::begin_choices(const Routing& routing) {
  Visits& visits = *routing.visits;
  const at::Tensor counts = context_.experts->received(visits.counted, std::exchange(visits.counts, {}));
  visits.sent = column(counts[0], 0);
  visits.received = column(counts[1], 0);
  visits.rows = sum_of(column(counts[1], 1));
  if (context_.arrival && *context_.arrival)
    (*context_.arrival)(
        model().sparse_before(block_ - 1),
        static_cast<double>(visits.rows) / static_cast<double>(routing.choice.experts.numel()));
  visits.by_rank.slots = visits.by_rank.slots.narrow(0, 0, sum_of(visits.sent));
  return begin_rows(*context_.experts, std::exchange(visits.packed, {}), visits.sent, visits.received);
}

/// The order of the rows of what came here.
void TensorOps::order_arrived(const Routing& routing, const Tensor& packed) {
  Visits& visits = *routing.visits;
  auto [experts, weights] =
      permute::unpacked_choices(packed, routing.choice.weights.scalar_type(), routing.choice.experts.size(1));
  visits.weights = std::move(weights);
  visits.order = permute::order(experts, model().experts->count / expert_ranks());
  visits.order.slots = visits.order.slots.narrow(0, 0, visits.rows);
}

TensorOps::Pending<TensorOps::Operand> TensorOps::begin_dispatch(const Site& site, Operand x,
                                                                 const Routing& routing, spec::Pass pass) {
  if (expert_ranks() == 1) return {std::move(x), {}};
  TORCH_CHECK(!x.quantised(), "rows in FP8 are not sent to other expert ranks");
  const Visits& visits = *routing.visits;
  Tensor leaving = run(site, {}, [&] { return permute::gather(x.value, visits.by_rank, pass); });
  std::optional<Pending<Tensor>> arriving;
  if (visits.packed.defined()) arriving = begin_choices(routing);
  Pending<Tensor> pending = begin_rows(*context_.experts, std::move(leaving), visits.sent, visits.received);
  x = {};
  if (arriving) order_arrived(routing, wait(std::move(*arriving)));
  run_deferred();
  return {{std::move(pending.value), {}}, std::move(pending.source), pending.ticket, pending.ranks};
}

TensorOps::Pending<at::Tensor> TensorOps::begin_return(const Site& site, Tensor of_arrived,
                                                       const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(of_arrived), {}};
  const Visits& visits = *routing.visits;
  Pending<Tensor> pending =
      begin_rows(*context_.experts, std::move(of_arrived), visits.received, visits.sent);
  if (*site.statistic == '\0') run_deferred();  // the few weights of choices hide nothing
  return pending;
}

at::Tensor TensorOps::add_returned(const Site& site, const Tensor& base, const Tensor& returned,
                                   const Routing& routing, spec::Pass pass) {
  return run(site, {}, [&] { return permute::combine(base, returned, routing.visits->by_rank, pass); });
}

at::Tensor TensorOps::returned_weights(const Site& site, Tensor of_choices, const Routing& routing) {
  if (expert_ranks() == 1) return of_choices;
  return run(site, {},
             [&] { return permute::by_choice(of_choices, choices(routing), routing.visits->by_rank); });
}

}  // namespace assay::impl
