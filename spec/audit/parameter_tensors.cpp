// nanoGPT's two counts of one model: of its parameters, and of the tensors that its optimizer is given.
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/whole_shape.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// All parameters of GPT-2's block in the sizes of `model`, as nanoGPT builds it.
double all_of(ModelSpec model, bool biased, bool padded) {
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = biased;
  if (padded) model.vocab = (model.vocab + 63) / 64 * 64;
  return parameter_count(model).to_double();
}

}  // namespace

Result judge_parameter_tensors(const Evidence& e) {
  const auto& tensors = e.record.tensors;
  const auto& printed = e.record[Setting::parameters];
  if (e.record.format.name != "nanogpt" || !tensors || !(tensors->matrices > 0 && tensors->vectors > 0))
    return not_judged("parameters of decayed and of other tensors");
  const double all = tensors->matrix_entries + tensors->vector_entries;
  // Tensors of a model of their own are what its count is held to.
  if (const auto own = shape_of_nanogpt(e.record)) {
    Result out = holding(1);
    out.printed = all, out.recomputed = exact_interval(parameter_count(*own).to_double());
    return out;
  }
  if (!e.model || !usable(printed)) return not_judged("a model of the tensors");
  const double layers = static_cast<double>(e.model->layers);
  const bool plain = tensors->vectors == 2 * layers + 1, biased = tensors->vectors == 8 * layers + 2;
  // A fork's blocks have other tensors.
  if (tensors->matrices != 4 * layers + 2 || !(plain || biased))
    return not_judged("a model of as many tensors");
  const double positions = static_cast<double>(e.model->context) * static_cast<double>(e.model->width);
  for (const bool padded : {true, false}) {
    const double made = all_of(*e.model, biased, padded);
    if (!wide(*printed).holds(made - positions) && !wide(*printed).holds(made)) continue;
    Result out = holding(1);
    out.printed = all, out.recomputed = exact_interval(made);
    // Of a length that no line states any longer, tables of other positions are as good.
    const double fewer = (made - all) / static_cast<double>(e.model->width);
    const bool other_length = !e.record[Setting::sequence_length] && fewer == std::floor(fewer) &&
                              fewer < static_cast<double>(e.model->context);
    if (all == made || other_length) return out;
    out = holding(1);
    contradict(out, all, exact_interval(made), tensors->line);
    blame(out, "tensors_miscounted",
          "the parameters of the tensors are not those of " + e.model->name + ", which the count of line " +
              std::to_string(printed->line) + " is: the tensors' counts are wrong, or another model's");
    return out;
  }
  return not_judged("a model of that count");
}

}  // namespace assay::spec::audit
