// A count of parameters beside a shape that the log prints whole, where no known slip of counting explains
// it: which of the two is wrong is what the FLOPs say, if anything.
#include "spec/audit/change_builder.hpp"
#include "spec/audit/conventions.hpp"
#include "spec/audit/interpretation.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/whole_shape.hpp"

namespace assay::spec::audit {

using R = Relation;

namespace {

constexpr R made_of_flops[] = {R::flops_per_token, R::flops_rate, R::flops_rate_of_batch, R::mfu,
                               R::mfu_of_batch};

/// What the FLOPs of a log are, whose count of parameters is not its shape's.
struct FlopsBeside {
  double x = 1;  ///< the count's over the shape's
  bool of_shape = false, of_count = false;
};

FlopsBeside flops_beside(const ChangeBuilder& b, const Evidence& e, const Comparisons& comparisons,
                         const Interpretation& reading) {
  const double printed = e.record[Setting::parameters]->value, made = count_of_shape(e, *e.model);
  const auto flops = counted_flops(e, e.record.format.convention);
  FlopsBeside out;
  // 6 FLOPs of a parameter more or less, under whichever convention.
  out.x = flops ? 1 + 6 * (printed - made) / flops->middle() : 1;
  for (const R relation : made_of_flops) {
    if (!b.has(relation) || !(out.x > 0) || out.x == 1) continue;
    const double factor = reading.factors[relation];
    const bool as_shape = agrees(at(comparisons, relation), factor),
               as_count = agrees(at(comparisons, relation), factor * out.x);
    out.of_shape |= as_shape && !as_count;
    out.of_count |= as_count && !as_shape;
  }
  return out;
}

std::vector<ChangeBuilder::Effect> of_flops(double x) {
  std::vector<ChangeBuilder::Effect> out;
  for (const R relation : made_of_flops) out.push_back({relation, x});
  return out;
}

std::vector<ChangeBuilder::Effect> with_parameters(double off, std::vector<ChangeBuilder::Effect> effects) {
  effects.push_back({R::parameters, off});
  return effects;
}

}  // namespace

void add_count_or_shape(ChangeBuilder& b, const Evidence& e, const Comparisons& comparisons,
                        const Interpretation& reading) {
  if (!e.model || !b.has(R::parameters)) return;
  const double made = count_of_shape(e, *e.model);
  const double off = at(comparisons, R::parameters).samples.front().ratio.middle();
  const auto [x, of_shape, of_count] = flops_beside(b, e, comparisons, reading);
  // A trainer that makes its FLOPs of the count it prints has them wrong with it.
  if (of_count && !of_shape && e.trainer.flops_of_printed_count)
    b.also(R::parameters, off, of_flops(x), ", and FLOP/s and MFU are made of that count");
  if (e.model_basis != whole_shape) return;
  // Dearer than every slip that makes the count to its last digit, and cheaper than to know nothing.
  constexpr double cost = 5;
  const bool tensors = counts_tensors(e.record);  // its shape is that of the tensors it counts
  const std::string shape = tensors ? "the tensors that are printed" : "the shape that is printed",
                    makes = " (" + std::string(tensors ? "the tensors make " : "the shape makes ") +
                            shown(made, Unit::none) + ")";
  if (of_shape && !of_count)
    b.add("parameters_miscounted",
          "the count of parameters is wrong: FLOP/s go with " + shape + ", not with it" + makes, cost,
          {{R::parameters, off}});
  else if (of_count && !of_shape)
    b.add("shape_not_that_ran",
          "another model ran than " + shape + ": FLOP/s go with the count of parameters" + makes, cost,
          with_parameters(off, of_flops(x)))
        .shape_unknown = true;
  else
    b.add("count_or_shape",
          "the count of parameters is wrong, or another model ran than " + shape +
              ": nothing else here tells which" + makes,
          cost, {{R::parameters, off}});
}

}  // namespace assay::spec::audit
