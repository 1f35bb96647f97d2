// What expert ranks send each other, on paper. How many tokens a rank gets is the routing's: here each token
// visits as many ranks as it can, and a rank gets as many tokens and rows as it sends.
#include <algorithm>
#include <utility>

#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

using time::StepPass;

namespace {
StepPass pass_of(Pass pass) { return pass == Pass::forward ? StepPass::forward : StepPass::backward; }
}  // namespace

/// impl/model/expert_exchange.cpp
void PaperOps::exchange_routing(const Site& site, Routing& routing) {
  const std::int64_t N = routing.rows.rows(), A = routing.rows.columns(), e = expert_ranks(),
                     visits = N * std::min(A, e), ends = s_.model.experts->count / e,
                     weight = statistic_ / index_bytes;
  record(site, Collective::all_to_all, Count(2 * e) * index_bytes);
  record(site, Collective::all_to_all, Count(visits) * A * (index_bytes + statistic_));
  {
    const Tensor visited = temporary("visited", {N, e}, index_bytes);
    routing.visit_slots = make("visit_slots", Purpose::activations, {N * e}, index_bytes);
    routing.visit_rows = make("visit_rows", Purpose::activations, {N, e}, index_bytes);
    routing.visit_ends = make("visit_ends", Purpose::activations, {e}, index_bytes);
  }
  Tensor sent = temporary("sent_choices", {visits, A * (1 + weight)}, index_bytes);
  const Tensor arrived = temporary("arrived_choices", {visits, A * (1 + weight)}, index_bytes);
  sent = {};
  const Tensor experts = temporary("arrived_experts", {visits, A}, index_bytes);
  routing.arrived_weights = make("arrived_weights", Purpose::activations, {visits, A}, statistic_);
  // Of all choices of what came, as many have rows here as this rank's tokens have.
  routing.arrived_slots = make("arrived_slots", Purpose::activations, {N * A}, index_bytes);
  routing.behind_arrived =
      make("behind_arrived_slots", Purpose::activations, {(visits - N) * A}, index_bytes);
  routing.arrived_rows = make("arrived_rows", Purpose::activations, {visits, A}, index_bytes);
  routing.own_ends = make("own_expert_ends", Purpose::activations, {ends}, index_bytes);
  record(step::site::permute, StepPass::forward, {}, (Count(N) * e + Count(visits) * A) * 3 * index_bytes);
}

PaperOps::Pending<Operand> PaperOps::begin_dispatch(const Site& site, Operand x, const Routing& routing,
                                                    Pass pass) {
  if (expert_ranks() == 1) return {std::move(x), {}};
  begin_op(site);
  read(x, ReadBy::forward);
  match(site, x.rows, routing.visit_rows.rows());
  const std::int64_t visits = routing.arrived_rows.rows();
  record(site, pass_of(pass), {},
         (Count(x.rows) + visits) * x.columns * element_ + Count(routing.visit_slots.rows()) * index_bytes);
  Tensor leaving = make("leaving", site.purpose, {visits, x.columns}, element_);
  const auto number = record(site, Collective::all_to_all, Count(visits) * x.columns * element_);
  return {operand(value(site, {visits, x.columns})), std::move(leaving), number};
}

PaperOps::Pending<Tensor> PaperOps::begin_return(const Site& site, Tensor of_arrived,
                                                 const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(of_arrived), {}};
  match(site, of_arrived.rows(), routing.arrived_rows.rows());
  const bool statistic = *site.statistic != '\0';  // the gradients of choices' weights
  const std::int64_t bytes = statistic ? statistic_ : element_;
  const auto number =
      record(site, Collective::all_to_all, Count(of_arrived.rows()) * of_arrived.columns() * bytes);
  return {make(statistic ? site.statistic : site.value, site.purpose, of_arrived.storage->shape, bytes),
          std::move(of_arrived), number};
}

Tensor PaperOps::add_returned(const Site& site, const Tensor& base, const Tensor& returned,
                              const Routing& routing, Pass pass) {
  begin_op(site);
  return added_up(site, base, returned, routing.visit_rows.rows(), pass);
}

Tensor PaperOps::returned_weights(const Site& site, Tensor of_choices, const Routing& routing) {
  if (expert_ranks() == 1) return of_choices;
  begin_op(site);
  const Count choices = Count(routing.weights.rows()) * routing.weights.columns();
  record(site, StepPass::backward, {}, choices * (2 * statistic_ + index_bytes));
  return make(site.statistic, site.purpose, routing.weights.storage->shape, statistic_);
}

}  // namespace assay::spec::paper
