#include "spec/model/trainable.hpp"

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {

/// The features of a part that are not computed: "layer_norm, a gelu MLP".
template <class Part>
std::string refusals(const Part& part, Computer by) {
  std::string all;
  for_each(fields<Part>, [&](const auto& field) {
    const auto& value = part.*field.member;
    const auto& computed = field.computed;
    std::string feature;
    if (computed.holds && !computed.holds(value) && !(computed.reference_ahead && by == Computer::reference))
      feature = computed.feature;
    if constexpr (requires { value.has_value(); })
      if (feature.empty() && value) feature = refusals(*value, by);
    all += (all.empty() || feature.empty() ? "" : ", ") + feature;
  });
  return all;
}

}  // namespace

std::string untrainable_feature(const ModelSpec& model) { return refusals(model, Computer::trainer); }

std::string uncomputed_feature(const ModelSpec& model) { return refusals(model, Computer::reference); }

bool trainable(Family family) {
  ModelSpec model;
  model.family = family;
  return untrainable_feature(model).empty();
}

std::string trainable_types() {
  // A Mistral is read as the Llama with a window that it is.
  std::string all;
  for (const Family family : choices<Family>())
    if (trainable(family)) {
      all += (all.empty() ? "" : ", ") + quote(to_string(family));
      if (family == Family::llama) all += ", \"mistral\"";
    }
  return all;
}

void require_trainable(const ModelSpec& model) {
  const std::string feature = untrainable_feature(model);
  if (feature.empty()) return;
  throw UserError(ExitCode::usage,
                  "model " + quote(model.name) + " cannot be trained: it has " + feature +
                      ", which the trainer does not compute; `assay flops` and `assay audit` take it; train "
                      "a model of type " +
                      trainable_types() +
                      " (norm = \"rms_norm\", mlp = \"swiglu\" or \"geglu\"), such as \"tiny-llama\" or "
                      "\"qwen3-0.6b\"");
}

void require_computed(const ModelSpec& model) {
  const std::string feature = uncomputed_feature(model);
  if (feature.empty()) return;
  throw UserError(ExitCode::usage, "model " + quote(model.name) + " has " + feature +
                                       ", which the reference does not compute; give it a model that "
                                       "spec/model/fields.hpp lets pass");
}

}  // namespace assay::spec
