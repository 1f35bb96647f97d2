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

void add_count_or_shape(ChangeBuilder& b, const Evidence& e, const Comparisons& comparisons,
                        const Interpretation& reading) {
  if (e.model_basis != whole_shape || !b.has(R::parameters)) return;
  const double printed = e.record[Setting::parameters]->value, made = count_of_shape(e, *e.model);
  const double off = at(comparisons, R::parameters).samples.front().ratio.middle();
  const auto flops = counted_flops(e, e.record.format.convention);
  // 6 FLOPs of a parameter more or less, under whichever convention.
  const double x = flops ? 1 + 6 * (printed - made) / flops->middle() : 1;
  bool of_shape = false, of_count = false;
  for (const R relation :
       {R::flops_per_token, R::flops_rate, R::flops_rate_of_batch, R::mfu, R::mfu_of_batch}) {
    if (!b.has(relation) || !(x > 0) || x == 1) continue;
    const double factor = reading.factors[relation];
    const bool as_shape = agrees(at(comparisons, relation), factor),
               as_count = agrees(at(comparisons, relation), factor * x);
    of_shape |= as_shape && !as_count;
    of_count |= as_count && !as_shape;
  }
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
          {{R::parameters, off},
           {R::flops_per_token, x},
           {R::flops_rate, x},
           {R::flops_rate_of_batch, x},
           {R::mfu, x},
           {R::mfu_of_batch, x}})
        .shape_unknown = true;
  else
    b.add("count_or_shape",
          "the count of parameters is wrong, or another model ran than " + shape +
              ": nothing else here tells which" + makes,
          cost, {{R::parameters, off}});
}

}  // namespace assay::spec::audit
