// What expert ranks send each other, on paper. How many tokens a rank gets is the routing's: here each token
// of this rank visits as many ranks as it can, and this rank's experts get the setting's load, from as many
// tokens as can bring it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/memory/expert_load.hpp"
#include "spec/step/paper/rules.hpp"

namespace assay::spec::paper {

using time::StepPass;

namespace {
StepPass pass_of(Pass pass) { return pass == Pass::forward ? StepPass::forward : StepPass::backward; }
}  // namespace

/// Tokens of N that are sent to other expert ranks, and to this one: each to as many as it can visit.
std::int64_t PaperOps::sent_tokens(std::int64_t N) const {
  return N * std::min(s_.model.experts->active, expert_ranks());
}

/// Rows of the experts of this rank, of N tokens on each rank of its group.
std::int64_t PaperOps::arrived_rows(std::int64_t N) const {
  const auto layer = static_cast<std::size_t>(s_.model.sparse_before(block_ - 1));
  const bool known = within_.empty() && layer < s_.layer_loads.size();
  const auto rows = std::llround((known ? s_.layer_loads[layer] : s_.load) *
                                 static_cast<double>(N * s_.model.experts->active));
  return std::clamp<std::int64_t>(rows, 1, memory::most_rows(s_, N, drops_));
}

/// impl/model/expert_exchange.cpp
void PaperOps::exchange_routing(const Site& site, Routing& routing) {
  const std::int64_t N = routing.rows.rows(), A = routing.rows.columns(), e = expert_ranks(),
                     visits = sent_tokens(N), rows = arrived_rows(N), came = std::min(e * N, rows),
                     ends = s_.model.experts->count / e, weight = statistic_ / index_bytes;
  record(site.op, Group::experts, Collective::all_to_all, Count(2 * e) * index_bytes);
  record(site.op, Group::experts, Collective::all_to_all, Count(visits) * A * (index_bytes + statistic_));
  {
    const Tensor visited = temporary("visited", {N, e}, index_bytes);
    routing.visit_slots = make("visit_slots", Purpose::activations, {N * e}, index_bytes);
    routing.visit_rows = make("visit_rows", Purpose::activations, {N, e}, index_bytes);
    routing.visit_ends = make("visit_ends", Purpose::activations, {e}, index_bytes);
  }
  Tensor sent = temporary("sent_choices", {visits, A * (1 + weight)}, index_bytes);
  const Tensor arrived = temporary("arrived_choices", {came, A * (1 + weight)}, index_bytes);
  sent = {};
  const Tensor experts = temporary("arrived_experts", {came, A}, index_bytes);
  routing.arrived_weights = make("arrived_weights", Purpose::activations, {came, A}, statistic_);
  // Some of the choices of what came have rows here.
  routing.arrived_slots = make("arrived_slots", Purpose::activations, {rows}, index_bytes);
  routing.behind_arrived = make("behind_arrived_slots", Purpose::activations, {came * A - rows}, index_bytes);
  routing.arrived_rows = make("arrived_rows", Purpose::activations, {came, A}, index_bytes);
  routing.own_ends = make("own_expert_ends", Purpose::activations, {ends}, index_bytes);
  record(step::site::permute, StepPass::forward, {}, (Count(N) * e + Count(came) * A) * 3 * index_bytes);
}

PaperOps::Pending<Operand> PaperOps::begin_dispatch(const Site& site, Operand x, const Routing& routing,
                                                    Pass pass) {
  if (expert_ranks() == 1) return {std::move(x), {}};
  begin_op(site);
  read(x, ReadBy::forward);
  match(site, x.rows, routing.visit_rows.rows());
  const std::int64_t visits = sent_tokens(x.rows), came = routing.arrived_rows.rows();
  record(site, pass_of(pass), {},
         (Count(x.rows) + visits) * x.columns * element_ + Count(routing.visit_slots.rows()) * index_bytes);
  Tensor leaving = make("leaving", site.purpose, {visits, x.columns}, element_);
  const auto number =
      record(site.op, Group::experts, Collective::all_to_all, Count(visits) * x.columns * element_);
  Pending<Operand> pending{operand(value(site, {came, x.columns})), std::move(leaving), number};
  x = {};
  run_deferred();
  return pending;
}

PaperOps::Pending<Tensor> PaperOps::begin_return(const Site& site, Tensor of_arrived,
                                                 const Routing& routing) {
  if (expert_ranks() == 1) return {std::move(of_arrived), {}};
  match(site, of_arrived.rows(), routing.arrived_rows.rows());
  const bool statistic = *site.statistic != '\0';  // the gradients of choices' weights
  const std::int64_t bytes = statistic ? statistic_ : element_;
  const auto number = record(site.op, Group::experts, Collective::all_to_all,
                             Count(of_arrived.rows()) * of_arrived.columns() * bytes);
  const std::vector<std::int64_t> back = {sent_tokens(routing.visit_rows.rows()), of_arrived.columns()};
  Pending<Tensor> pending{make(statistic ? site.statistic : site.value, site.purpose, back, bytes),
                          std::move(of_arrived), number};
  if (!statistic) run_deferred();  // the few weights of choices hide nothing
  return pending;
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
