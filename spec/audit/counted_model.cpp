#include "spec/audit/counted_model.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/whole_shape.hpp"

namespace assay::spec::audit {

CountFit count_fits(const ModelSpec& model, const Printed& parameters) {
  const Interval printed = wide(parameters);
  const double count = parameter_count(model).to_double(), V = static_cast<double>(model.vocab),
               D = static_cast<double>(model.width);
  const double tables = model.tied_embeddings ? 1 : 2;
  if (printed.holds(count)) return CountFit::exactly;
  for (const double multiple : {64.0, 128.0, 256.0, 1024.0})
    if (printed.holds(count + tables * (std::ceil(V / multiple) * multiple - V) * D)) return CountFit::padded;
  for (const double off : {-V * D, V * D, -2 * V * D, -D * static_cast<double>(model.layers)})
    if (printed.holds(count + off)) return CountFit::but_for_tables;
  return std::abs(parameters.value / count - 1) < 1e-3 ? CountFit::nearly : CountFit::no;
}

std::vector<double> counts_beside_positions(const ModelSpec& model, bool of_nanogpt) {
  if (model.positions != Positions::learned) return {};
  const double V = static_cast<double>(model.vocab), D = static_cast<double>(model.width);
  const auto without = [](const ModelSpec& one) {
    return (parameter_count(one) - parameter_counts(one).position_embedding).to_double();
  };
  if (!of_nanogpt) return {without(model)};
  ModelSpec plain = model;
  plain.qkv_bias = plain.output_bias = plain.mlp_bias = plain.norm_bias = false;
  std::vector<double> out;
  for (const ModelSpec& one : {model, plain})
    for (const double entries : {V, std::ceil(V / 64) * 64}) out.push_back(without(one) + (entries - V) * D);
  return out;
}

const std::vector<ModelSpec>& known_models() {
  static const std::vector<ModelSpec> all = [] {
    std::vector<ModelSpec> models;
    for (const std::string& name : model_names()) models.push_back(find_model(name));
    return models;
  }();
  return all;
}

std::optional<ModelSpec> as_counted(const ModelSpec& model, bool kv_heads_known, bool head_dim_known,
                                    std::optional<bool> tied_known, std::optional<bool> qk_norm_known,
                                    std::optional<Norm> norm, const std::optional<Printed>& parameters,
                                    bool whole) {
  std::vector<ModelSpec> readings;
  for (std::int64_t kv = model.kv_heads; kv >= 1; kv /= 2) {
    for (const bool tied : {false, true})
      for (const bool qk_norm : {false, true}) {
        if ((tied_known && tied != *tied_known) || (qk_norm_known && qk_norm != *qk_norm_known)) continue;
        ModelSpec reading = model;
        reading.kv_heads = kv;
        reading.tied_embeddings = tied;
        reading.qk_norm = qk_norm;
        try {
          check(reading);
          readings.push_back(reading);
        } catch (const std::exception&) {
          // Not a model: heads that do not divide.
        }
      }
    if (kv_heads_known) break;
  }
  if (readings.empty()) return std::nullopt;
  // Tied or not, normed or not, the matrices are the same; heads of another width or number are not.
  if (!parameters) return kv_heads_known && head_dim_known ? std::optional(readings.front()) : std::nullopt;
  for (const ModelSpec& reading : readings)
    if (count_fits(reading, *parameters) == CountFit::exactly) return reading;
  for (const ModelSpec& reading : readings)
    if (count_fits(reading, *parameters) == CountFit::but_for_tables) return reading;
  // Where the log leaves nothing of the shape open, the count is another model's; else this is some other
  // architecture of these dimensions, and its FLOPs are not known.
  const auto fits = [&](const ModelSpec& reading) { return any_count_fits(reading, *parameters, norm); };
  // Biases take no part in matrix products: the FLOPs of a shape that is whole are known with them.
  for (const ModelSpec& reading : readings)
    for (const ModelSpec& biased : with_any_biases(reading, norm))
      if (whole && count_fits(biased, *parameters) == CountFit::exactly) return biased;
  if (!whole || std::any_of(readings.begin(), readings.end(), fits)) return std::nullopt;
  return readings.front();
}

std::optional<std::int64_t> vocabulary_of(const ModelSpec& model, const Printed& parameters) {
  const double row = (model.tied_embeddings ? 1 : 2) * static_cast<double>(model.width),
               rows = (parameters.value - parameter_count(model).to_double()) / row,
               vocab = static_cast<double>(model.vocab) + rows;
  const bool some = rows == std::floor(rows) && vocab >= 2 && rows <= 1e7;
  return some ? std::optional(static_cast<std::int64_t>(vocab)) : std::nullopt;
}

bool of_other_dimension(const ModelSpec& model, const Printed& parameters, std::int64_t vocab) {
  constexpr std::int64_t most_layers = 8;
  const auto& known = known_models();
  if (std::any_of(known.begin(), known.end(), [&](const ModelSpec& one) { return one.vocab == vocab; }))
    return false;
  ModelSpec other = model;
  other.kv_heads = other.heads;
  if (model.kv_heads != model.heads && count_fits(other, parameters) == CountFit::exactly) return true;
  for (std::int64_t more = -most_layers; more <= most_layers; ++more) {
    other = model;
    other.layers += more;
    if (more != 0 && other.layers > 0 && count_fits(other, parameters) == CountFit::exactly) return true;
  }
  return false;
}

}  // namespace assay::spec::audit
