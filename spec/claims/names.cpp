#include <string>

#include "spec/claims/call.hpp"
#include "spec/claims/claim.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/flops/exact.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/model/token_statistics.hpp"

namespace assay::spec::claims {
namespace {

Interval convention_flops(const Call& call) {
  const auto convention = convention_from(call.text(0));
  if (!convention) call.refuse(0, "names no convention: \"" + call.text(0) + "\"");
  const ConventionCount count = flops_per_token(*convention, find_model(call.text(1)), call.whole(2));
  if (!count.flops) call.refuse(0, call.text(0) + " " + count.why_not);
  return exactly(*count.flops);
}

/// FLOPs of a part of the layers, all tokens of a sequence, both passes.
Interval flops_of(const Call& call) {
  const FlopBreakdown flops = exact_flops(find_model(call.text(1)), call.whole(2));
  using C = FlopComponent;
  const std::string& part = call.text(0);
  if (part == "attention")
    return exactly(flops.of(C::qkv) + flops.of(C::attention_scores) + flops.of(C::attention_values) +
                   flops.of(C::attention_output) + flops.of(C::latent_projections));
  if (part == "scores") return exactly(flops.of(C::attention_scores) + flops.of(C::attention_values));
  if (part == "mlp") return exactly(flops.of(C::gate_up) + flops.of(C::down));
  if (part == "experts")
    return exactly(flops.of(C::router) + flops.of(C::routed_experts) + flops.of(C::shared_experts));
  if (part == "head") return exactly(flops.of(C::head));
  call.refuse(0, "must be attention, scores, mlp, experts or head");
}

Interval peak(const Call& call) {
  const auto precision = precision_from(call.text(1));
  if (!precision) call.refuse(1, "names no precision");
  const Peak* found = named_gpu(call.text(0)).peak(*precision);
  if (found == nullptr) call.refuse(1, "is a peak that no document of that GPU states");
  if (call.text(2) == "dense") return exact_interval(found->dense);
  if (call.text(2) != "sparse") call.refuse(2, "must be dense or sparse");
  if (!found->sparse) call.refuse(2, "is a peak that no document of that GPU states");
  return exact_interval(*found->sparse);
}

Interval fact(const Call& call, const std::optional<Fact>& stated) {
  if (!stated) call.refuse(0, "has no such fact in its documents");
  return exact_interval(stated->value);
}

/// Expected first loss on tokens drawn uniformly, four standard deviations to either side.
Interval first_loss(const Call& call) {
  const InitialLoss loss = expected_initial_loss(find_model(call.text(0)), call.whole(1));
  return {loss.mean - 4 * loss.standard_deviation, loss.mean + 4 * loss.standard_deviation};
}

/// The same for text, whose tokens repeat: `collision` is the probability that two tokens are the same;
/// neighbours are taken as independent.
Interval first_loss_of_text(const Call& call) {
  const ModelSpec model = find_model(call.text(0));
  const double collision = call.interval(2).middle();
  TokenStatistics text = uniform_tokens(model.vocab, call.whole(1), model.context);
  text.input_collision = text.target_collision = collision;
  text.pair_collision = text.reverse_collision = collision * collision;
  const InitialLoss loss = expected_initial_loss(model, text);
  return {loss.mean - 4 * loss.standard_deviation, loss.mean + 4 * loss.standard_deviation};
}

}  // namespace

const std::vector<NamedFunction>& fact_functions() {
  static const std::vector<NamedFunction> all = {
      {"parameters", 1, [](const Call& call) { return exactly(parameter_count(find_model(call.text(0)))); }},
      {"active_parameters", 1,
       [](const Call& call) { return exactly(active_parameter_count(find_model(call.text(0)))); }},
      {"matmul_parameters", 1,
       [](const Call& call) { return exactly(matmul_parameters(find_model(call.text(0)))); }},
      {"embedding_parameters", 1,
       [](const Call& call) { return exactly(parameter_counts(find_model(call.text(0))).token_embedding); }},
      {"flops", 3, convention_flops},
      {"flops_of", 3, flops_of},
      {"peak", 3, peak},
      {"memory", 1, [](const Call& call) { return fact(call, named_gpu(call.text(0)).memory); }},
      {"memory_bandwidth", 1,
       [](const Call& call) { return fact(call, named_gpu(call.text(0)).memory_bandwidth); }},
      {"nvlink", 1, [](const Call& call) { return fact(call, named_gpu(call.text(0)).nvlink); }},
      {"network", 1, [](const Call& call) { return fact(call, named_gpu(call.text(0)).network); }},
      {"power", 1, [](const Call& call) { return fact(call, named_gpu(call.text(0)).power); }},
      {"first_loss", 2, first_loss},
      {"first_loss_of_text", 3, first_loss_of_text},
  };
  return all;
}

Names claim_names() {
  Names names;
  for (const auto* functions : {&fact_functions(), &run_functions()})
    for (const NamedFunction& entry : *functions)
      names.functions[entry.name] = [entry](const std::vector<Argument>& list) {
        return entry.body(Call(entry.name, list, entry.arguments));
      };
  return names;
}

}  // namespace assay::spec::claims
