#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {
namespace {

/// The one of `values` whose ratio to `printed` is nearest to 1.
double nearest_of(double printed, const std::vector<double>& values) {
  double best = values.front();
  for (const double value : values)
    if (std::abs(std::log(printed / value)) < std::abs(std::log(printed / best))) best = value;
  return best;
}

/// A model of the name that the log says is known, and has another count: either may be the one that ran.
std::string no_model(const Evidence& e) {
  const ModelSpec* const called = model_called(e.record);
  if (!called) return "model";
  return "a model of that count: " + called->name + ", as it is called, has " +
         shown(parameter_count(*called).to_double(), Unit::none);
}

/// A count beside a shape that is printed whole. Quotients are compared with room for their rounding, in
/// which one of many parameters would be lost: a count that the shape does not make is put beyond it.
void add_of_whole_shape(Comparison& to, const Printed& printed, const Evidence& e) {
  add_sample(to, printed, exact_interval(count_of_shape(e, *e.model)));
  Interval& ratio = to.samples.back().ratio;
  constexpr double beyond = 1e-8;
  if (ratio.low > 1) ratio = {std::max(ratio.low, 1 + beyond), std::max(ratio.high, 1 + beyond)};
  if (ratio.high < 1) ratio = {std::min(ratio.low, 1 - beyond), std::min(ratio.high, 1 - beyond)};
}

void compare_parameters(const Evidence& e, Comparisons& out) {
  Comparison& all = at(out, Relation::parameters);
  Comparison& without = at(out, Relation::parameters_nonembedding);
  const auto &printed = e.record[Setting::parameters], &rest = e.record[Setting::parameters_nonembedding];
  if (!usable(printed))
    all.missing = "parameters";
  else if (!e.model)
    all.missing = no_model(e);
  else if (e.model_basis == vocabulary_of_count)
    all.missing = "the vocabulary that ran";
  else if (const auto counts =
               counts_beside_positions(*e.model, e.trainer.counted == Counted::beside_positions);
           std::any_of(counts.begin(), counts.end(), [&](double n) { return wide(*printed).holds(n); }))
    add_sample(all, *printed, exact_interval(nearest_of(printed->value, counts)));
  else if (e.model_basis == whole_shape ||
           (e.trainer.states_own_vocabulary && (e.model_basis == "named" || e.model_basis == "defined")))
    add_of_whole_shape(all, *printed, e);
  else if (e.model_basis == "parameters as printed")
    all.missing = "a model named in the log";
  else if (const CountFit fit = count_fits(*e.model, *printed); fit == CountFit::padded)
    add_sample(all, *printed, wide(*printed));
  else if (e.model_basis != "named" && e.model_basis != "defined" &&
           (fit == CountFit::nearly || fit == CountFit::no))
    all.missing = "the model's whole shape";
  else
    add_sample(all, *printed, exact_interval(parameter_count(*e.model).to_double()));

  if (!usable(rest)) {
    without.missing = "parameters without embedding";
  } else if (e.model) {
    const Interval count =
        usable(printed) ? wide(*printed) : exact_interval(parameter_count(*e.model).to_double());
    const double total = usable(printed) ? printed->value : count.low;
    const double table = static_cast<double>(e.model->vocab) * static_cast<double>(e.model->width);
    const double positions = static_cast<double>(e.model->context) * static_cast<double>(e.model->width);
    std::vector<double> values = {total - table, total - 2 * table};
    // "without embedding" is also said where only a table of positions is left out.
    if (e.model->positions == Positions::learned) values.push_back(total - positions);
    const double left_out = total - nearest_of(rest->value, values);
    add_sample(without, *rest, count - exact_interval(left_out));
  } else if (usable(printed)) {
    // Whatever the vocabulary, an embedding has parameters.
    add_sample(without, *rest, wide(*printed) * Interval{0.2, 1 - 1e-6});
  } else {
    without.missing = "parameters";
  }
}

void compare_flops(const Evidence& e, Comparisons& out) {
  Comparison& to = at(out, Relation::flops_per_token);
  const auto& setting = e.record[Setting::flops_per_token];
  const Printed* printed = usable(setting) ? &*setting : nullptr;
  for (const Step* step : e.steps)
    if (!printed && usable((*step)[Field::flops_per_token])) printed = &*(*step)[Field::flops_per_token];
  if (!printed) {
    to.missing = "FLOPs per token";
    return;
  }
  if (const auto stated = counted_flops(e, e.record.format.convention)) {
    add_sample(to, *printed, *stated);
    return;
  }
  const auto counted = counted_flops(e);
  if (counted.empty()) {
    to.missing = e.sequence_length ? "model" : "sequence length";
    return;
  }
  // No convention is stated: the nearest one stands, and only a count that is none of them contradicts.
  const CountedFlops* best = &counted.front();
  const auto distance = [&](const CountedFlops& c) {
    return std::abs(std::log(printed->value / c.flops.middle()));
  };
  for (const CountedFlops& c : counted)
    if (distance(c) < distance(*best)) best = &c;
  // A count made of printed parameters alone shows that it fits, not that another does not.
  if (e.model || distance(*best) < 0.005)
    add_sample(to, *printed, best->flops);
  else
    to.missing = "model";
}

void compare_ffn(const Evidence& e, Comparisons& out) {
  Comparison& to = at(out, Relation::ffn_flops_per_layer);
  const auto& printed = e.record[Setting::ffn_flops_per_layer];
  if (!usable(printed))
    to.missing = "FLOPs of a layer's MLP";
  else if (!e.model || e.model->experts)
    to.missing = "a dense model";
  else if (!e.sequence_length)
    to.missing = "sequence length";
  else
    add_sample(to, *printed, exact_interval(2 * ffn_entries(*e.model)) * *e.sequence_length);
}

}  // namespace

double count_of_shape(const Evidence& e, const ModelSpec& model) {
  const double V = static_cast<double>(model.vocab), D = static_cast<double>(model.width);
  const double rows = e.trainer.counted == Counted::padded_vocabulary ? std::ceil(V / 128) * 128 - V : 0;
  const double positions =
      e.trainer.counted == Counted::beside_positions && model.positions == Positions::learned
          ? static_cast<double>(model.context)
          : 0;
  return parameter_count(model).to_double() + (rows - positions) * D;
}

double ffn_entries(const ModelSpec& model) {
  const double matrices = gated(model.mlp) ? 3 : 2;
  return matrices * static_cast<double>(model.width) * static_cast<double>(model.ffn);
}

std::string note_on_parameters(const Evidence& e) {
  if (!e.model || e.model->positions != Positions::learned) return "";
  const double all = parameter_count(*e.model).to_double(),
               positions = parameter_counts(*e.model).position_embedding.to_double();
  return e.model->name + " has " + shown(all, Unit::none) + ", " + shown(all - positions, Unit::none) +
         " without its learned positions";
}

void compare_model(const Evidence& evidence, Comparisons& out) {
  compare_parameters(evidence, out);
  compare_flops(evidence, out);
  compare_ffn(evidence, out);
}

}  // namespace assay::spec::audit
