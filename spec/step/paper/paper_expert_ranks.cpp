// What expert ranks send each other, on paper. How many rows a rank gets is the routing's: here it gets as
// many as it sends, as with even routing.
#include <utility>

#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

using time::StepPass;

namespace {
StepPass pass_of(Pass pass) { return pass == Pass::forward ? StepPass::forward : StepPass::backward; }
}  // namespace

/// impl/model/expert_exchange.cpp
void PaperOps::exchange_routing(const Site& site, Routing& routing) {
  const std::int64_t X = s_.model.experts->count, rows = routing.slots.rows();
  record(site, Collective::all_to_all, Count(X) * index_bytes);
  record(site, Collective::all_to_all, Count(rows) * statistic_);
  const Tensor mine = temporary("sent_rows", {X}, index_bytes),
               theirs = temporary("received_rows", {X}, index_bytes);
  const Tensor expert_of = temporary("arrived_experts", {rows, 1}, index_bytes);
  routing.arrived_slots = make("arrival_slots", Purpose::activations, {rows}, index_bytes);
  routing.arrived_rows = make("arrival_rows", Purpose::activations, {rows, 1}, index_bytes);
  routing.own_ends = make("own_expert_ends", Purpose::activations, {X / expert_ranks()}, index_bytes);
  const Tensor by_row = temporary("sent_weights", {rows}, statistic_);
  routing.arrived_weights = make("arrived_weights", Purpose::activations, {rows, 1}, statistic_);
  record(step::site::permute, StepPass::forward, {}, Count(rows) * 3 * index_bytes);
}

PaperOps::Pending<Operand> PaperOps::begin_dispatch(const Site& site, Operand x, const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(x), {}};
  read(x, ReadBy::forward);
  match(site, x.rows, routing.slots.rows());
  record(site, Collective::all_to_all, Count(x.rows) * x.columns * element_);
  Tensor arrived = value(site, {x.rows, x.columns});
  return {operand(arrived), std::move(x.tensor)};
}

Operand PaperOps::by_expert(const Site& site, Operand x, const Routing& routing, Pass pass) {
  if (expert_ranks() == 1) return x;
  return operand(sorted(site, x.tensor, routing, pass));
}

Tensor PaperOps::by_arrival(const Site& site, Tensor rows, const Routing& routing, Pass pass) {
  return expert_ranks() == 1 ? std::move(rows) : sorted(site, rows, routing, pass);
}

/// Rows read once and written once in another order.
Tensor PaperOps::sorted(const Site& site, const Tensor& rows, const Routing& routing, Pass pass) {
  begin_op(site);
  match(site, rows.rows(), routing.arrived_slots.rows());
  const Count entries = Count(rows.rows()) * rows.columns();
  record(site, pass_of(pass), {}, 2 * entries * element_ + Count(rows.rows()) * index_bytes);
  return value(site, rows.storage->shape);
}

PaperOps::Pending<Tensor> PaperOps::begin_return(const Site& site, Tensor rows, const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(rows), {}};
  match(site, rows.rows(), routing.slots.rows());
  const bool statistic = *site.statistic != '\0';  // the gradients of rows' weights
  const std::int64_t bytes = statistic ? statistic_ : element_;
  record(site, Collective::all_to_all, Count(rows.rows()) * rows.columns() * bytes);
  return {make(statistic ? site.statistic : site.value, site.purpose, rows.storage->shape, bytes),
          std::move(rows)};
}

Tensor PaperOps::by_slot(const Site& site, Tensor of_rows, const Routing& routing) {
  if (expert_ranks() == 1) return of_rows;
  begin_op(site);
  match(site, of_rows.rows(), routing.slots.rows());
  record(site, StepPass::backward, {}, Count(of_rows.rows()) * (2 * statistic_ + index_bytes));
  return make(site.statistic, site.purpose, routing.weights.storage->shape, statistic_);
}

}  // namespace assay::spec::paper
