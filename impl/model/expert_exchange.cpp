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
  const at::Tensor values = counts.select(1, of).contiguous();
  const auto* first = values.const_data_ptr<std::int64_t>();
  return {first, first + values.numel()};
}

std::int64_t sum_of(const Counts& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return sum;
}

/// Lengths of the groups that end at `ends`.
at::Tensor lengths(const at::Tensor& ends) { return at::diff(ends, 1, 0, at::zeros({1}, ends.options())); }

/// Begins to send the rows of `from` and to receive as many as `received` says.
TensorOps::Pending<at::Tensor> begin_rows(Communicator& ranks, at::Tensor from, const Counts& sent,
                                          const Counts& received) {
  std::vector<std::int64_t> shape = from.sizes().vec();
  shape.front() = sum_of(received);
  at::Tensor into = at::empty(shape, from.options());
  const auto ticket = ranks.begin_all_to_all(from, sent, into, received);
  return {std::move(into), std::move(from), ticket, &ranks};
}
}  // namespace

/// Which tokens go where, and the choices and weights of those that come here. The host learns how many,
/// since it allocates what arrives: only the routing says how many there are.
void TensorOps::exchange_routing(Routing& routing) {
  Communicator& ranks = *context_.experts;
  const std::int64_t e = ranks.size(), each = model().experts->count / e, A = model().experts->active;
  at::Tensor chosen = routing.choice.experts;
  if (drops()) chosen = chosen.masked_fill(routing.order.rows.lt(0), -1);
  Visits& visits = routing.visits.emplace();

  const at::Tensor all_ranks = at::arange(e, chosen.options());
  const at::Tensor visited = at::div(chosen, each, "floor").unsqueeze(2).eq(all_ranks).any(1);
  visits.by_rank = permute::order(at::where(visited, all_ranks, -1).to(at::kInt), e);
  // Tokens, and choices of experts, by the rank that they are for.
  const at::Tensor mine = at::stack({lengths(visits.by_rank.ends),
                                     lengths(routing.order.ends.view({e, each}).select(1, each - 1))},
                                    1),
                   theirs = at::empty_like(mine);
  const Counts one_of_each(static_cast<std::size_t>(e), 1);
  ranks.wait(ranks.begin_all_to_all(mine, one_of_each, theirs, one_of_each));
  ranks.settle();  // a rank that is gone is an error here, and no wait without end
  const at::Tensor counts = at::stack({mine, theirs}).to(at::kLong).cpu();
  visits.sent = column(counts[0], 0);
  visits.received = column(counts[1], 0);
  visits.by_rank.slots = visits.by_rank.slots.narrow(0, 0, sum_of(visits.sent));

  // Weights and choices travel as one row of integers; experts have the numbers that they have there, those
  // of other ranks -1.
  const at::Tensor& slots = visits.by_rank.slots;
  const at::Tensor tokens = at::div(slots, e, "floor"), first = slots.remainder(e).mul(each).unsqueeze(1),
                   there = chosen.index_select(0, tokens).sub(first),
                   named = at::where(there.ge(0).logical_and(there.lt(each)), there, -1).to(at::kInt),
                   weights = routing.choice.weights.index_select(0, tokens).view(at::kInt),
                   arrived =
                       wait(begin_rows(ranks, at::cat({weights, named}, 1), visits.sent, visits.received));
  visits.weights = arrived.narrow(1, 0, weights.size(1))
                       .clone(at::MemoryFormat::Contiguous)
                       .view(routing.choice.weights.scalar_type());
  visits.order =
      permute::order(arrived.narrow(1, weights.size(1), A).clone(at::MemoryFormat::Contiguous), each);
  visits.order.slots = visits.order.slots.narrow(0, 0, sum_of(column(counts[1], 1)));
}

TensorOps::Pending<TensorOps::Operand> TensorOps::begin_dispatch(const Site& site, Operand x,
                                                                 const Routing& routing, spec::Pass pass) {
  if (expert_ranks() == 1) return {std::move(x), {}};
  TORCH_CHECK(!x.quantised(), "rows in FP8 are not sent to other expert ranks");
  const Visits& visits = *routing.visits;
  Tensor leaving = run(site, {}, [&] { return permute::gather(x.value, visits.by_rank, pass); });
  Pending<Tensor> pending = begin_rows(*context_.experts, std::move(leaving), visits.sent, visits.received);
  return {{std::move(pending.value), {}}, std::move(pending.source), pending.ticket, pending.ranks};
}

TensorOps::Pending<at::Tensor> TensorOps::begin_return(const Site&, Tensor of_arrived,
                                                       const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(of_arrived), {}};
  const Visits& visits = *routing.visits;
  return begin_rows(*context_.experts, std::move(of_arrived), visits.received, visits.sent);
}

at::Tensor TensorOps::add_returned(const Site& site, const Tensor& base, const Tensor& returned,
                                   const Routing& routing, spec::Pass pass) {
  return run(site, {}, [&] { return permute::combine(base, returned, routing.visits->by_rank, pass); });
}

at::Tensor TensorOps::returned_weights(const Site& site, Tensor of_choices, const Routing& routing) {
  if (expert_ranks() == 1) return of_choices;
  return run(site, {}, [&] {
    const at::Tensor& chosen = routing.choice.experts;
    const std::int64_t A = chosen.size(1), each = model().experts->count / expert_ranks();
    const at::Tensor row =
                         routing.visits->by_rank.rows.gather(1, at::div(chosen, each, "floor").to(at::kLong)),
                     choice = row.mul(A).add(at::arange(A, row.options()));
    // A dropped choice went nowhere.
    const at::Tensor sent = drops() ? choice.clamp_min(0) : choice;
    at::Tensor out = of_choices.view({-1}).index_select(0, sent.view({-1})).view(chosen.sizes());
    return drops() ? out.masked_fill_(routing.order.rows.lt(0), 0) : out;
  });
}

}  // namespace assay::impl
