// What expert ranks send each other: rows of tokens to the ranks that hold their experts, and the way back.
// Every exchange is a copy, and what arrives is sorted by the rank that it came from: a run repeats bit for
// bit.
#include <ATen/ATen.h>

#include <utility>

#include "impl/model/tensor_ops.hpp"

namespace assay::impl {

namespace {
using Counts = std::vector<std::int64_t>;

/// The order that undoes `order`, of one slot a row.
permute::Order undoing(const permute::Order& order) {
  return {.slots = order.rows.view({-1}), .rows = order.slots.view({-1, 1}), .ends = order.ends};
}

Counts row_counts(const at::Tensor& row) {
  const auto* first = row.const_data_ptr<std::int64_t>();
  return {first, first + row.numel()};
}

std::int64_t rows_in(const Counts& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return sum;
}

/// Begins to send the rows of `from` and to receive as many as `received` says.
TensorOps::Pending<at::Tensor> begin_rows(Communicator& ranks, at::Tensor from, const Counts& sent,
                                          const Counts& received) {
  std::vector<std::int64_t> shape = from.sizes().vec();
  shape.front() = rows_in(received);
  at::Tensor into = at::empty(shape, from.options());
  const auto ticket = ranks.begin_all_to_all(from, sent, into, received);
  return {std::move(into), std::move(from), ticket, &ranks};
}
}  // namespace

/// How many rows go where, and the weights of those that come here. The host learns the numbers, since it
/// allocates what arrives: no row is dropped, so only the routing says how many there are.
void TensorOps::exchange_routing(Routing& routing) {
  Communicator& ranks = *context_.experts;
  const std::int64_t e = ranks.size(), each = model().experts->count / e;
  const at::Tensor& ends = routing.order.ends;
  const at::Tensor mine = at::diff(ends, 1, 0, at::zeros({1}, ends.options())).contiguous(),
                   theirs = at::empty_like(mine);
  const Counts of_each_rank(static_cast<std::size_t>(e), each);
  ranks.wait(ranks.begin_all_to_all(mine, of_each_rank, theirs, of_each_rank));
  ranks.settle();  // a rank that is gone is an error here, and no wait without end
  const at::Tensor counts = at::stack({mine, theirs}).view({2, e, each}).sum({2}, false, at::kLong).cpu();
  Arrivals& arrivals = routing.arrivals.emplace();
  arrivals.sent = row_counts(counts[0]);
  arrivals.received = row_counts(counts[1]);

  const std::int64_t rows = rows_in(arrivals.received);
  const at::Tensor own = at::arange(each, ends.options()).repeat({e});
  const at::Tensor expert_of = at::repeat_interleave(own, theirs, 0, rows).view({rows, 1});
  arrivals.order = permute::order(expert_of, each);

  const at::Tensor by_row = routing.choice.weights.view({-1}).index_select(0, routing.order.slots);
  arrivals.weights = wait(begin_rows(ranks, by_row.view({-1, 1}), arrivals.sent, arrivals.received));
}

TensorOps::Pending<TensorOps::Operand> TensorOps::begin_dispatch(const Site&, Operand x,
                                                                 const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(x), {}};
  TORCH_CHECK(!x.quantised(), "rows in FP8 are not sent to other expert ranks");
  const Arrivals& arrivals = *routing.arrivals;
  Pending<Tensor> pending =
      begin_rows(*context_.experts, std::move(x.value), arrivals.sent, arrivals.received);
  return {{std::move(pending.value), {}}, std::move(pending.source), pending.ticket, pending.ranks};
}

TensorOps::Operand TensorOps::by_expert(const Site& site, Operand x, const Routing& routing,
                                        spec::Pass pass) {
  if (expert_ranks() == 1) return x;
  return {run(site, {}, [&] { return permute::gather(x.value, routing.arrivals->order, pass); }), {}};
}

at::Tensor TensorOps::by_arrival(const Site& site, Tensor rows, const Routing& routing, spec::Pass pass) {
  if (expert_ranks() == 1) return rows;
  return run(site, {}, [&] { return permute::gather(rows, undoing(routing.arrivals->order), pass); });
}

TensorOps::Pending<at::Tensor> TensorOps::begin_return(const Site&, Tensor rows, const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(rows), {}};
  const Arrivals& arrivals = *routing.arrivals;
  return begin_rows(*context_.experts, std::move(rows), arrivals.received, arrivals.sent);
}

at::Tensor TensorOps::by_slot(const Site& site, Tensor of_rows, const Routing& routing) {
  if (expert_ranks() == 1) return of_rows;
  const at::Tensor& rows = routing.order.rows;
  return run(site, {},
             [&] { return of_rows.view({-1}).index_select(0, rows.view({-1})).view(rows.sizes()); });
}

}  // namespace assay::impl
