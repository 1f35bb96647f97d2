#include "spec/audit/whole_shape.hpp"

#include <cmath>
#include <exception>
#include <utility>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

std::vector<ModelSpec> with_any_biases(const ModelSpec& model, std::optional<Norm> stated) {
  std::vector<ModelSpec> out;
  for (const bool norms : {false, true}) {
    if (stated && norms != (*stated == Norm::layer_norm)) continue;
    for (const auto& [qkv, all] : {std::pair(false, false), {true, false}, {true, true}}) {
      ModelSpec one = model;
      one.qkv_bias = qkv;
      one.output_bias = one.mlp_bias = all;
      one.norm = norms ? Norm::layer_norm : one.norm;
      one.norm_bias = norms;
      out.push_back(one);
    }
  }
  return out;
}

bool any_count_fits(const ModelSpec& shape, const Printed& parameters, std::optional<Norm> stated) {
  const double positions = static_cast<double>(shape.context) * static_cast<double>(shape.width);
  for (const ModelSpec& model : with_any_biases(shape, stated)) {
    for (const double more : {0.0, positions}) {
      Printed rest = parameters;
      rest.value -= more, rest.low -= more, rest.high -= more;
      const CountFit fit = count_fits(model, rest);
      if (fit == CountFit::exactly || fit == CountFit::padded || fit == CountFit::but_for_tables) return true;
    }
  }
  return false;
}

std::vector<ModelSpec> shapes_of_llmc(const RunRecord& record) {
  const auto at = [&](Setting setting) { return number_in(record, setting); };
  const auto layers = at(Setting::layers), width = at(Setting::width), heads = at(Setting::heads);
  ModelSpec model = find_model("gpt2");
  if (!trainer_of(record).trains_gpt2_shapes || !layers || !width || !heads || *layers > 1e4 ||
      *width > 1e6 || *heads > 1e5 || at(Setting::vocab) != static_cast<double>(model.vocab))
    return {};
  model.name = "shape as printed";
  model.layers = static_cast<std::int64_t>(*layers);
  model.width = static_cast<std::int64_t>(*width);
  model.heads = model.kv_heads = static_cast<std::int64_t>(*heads);
  model.ffn = 4 * model.width;
  if (model.heads < 1) return {};
  model.head_dim = model.width / model.heads;
  std::vector<ModelSpec> out;
  for (const double positions : {1024.0, 2048.0, at(Setting::sequence_length).value_or(1024)}) {
    if (positions < 1 || positions > 1e9) continue;
    model.context = static_cast<std::int64_t>(positions);
    try {
      check(model);
      out.push_back(model);
    } catch (const std::exception&) {
      // Not a model: heads that do not divide.
    }
  }
  return out;
}

bool counts_tensors(const RunRecord& record) {
  return trainer_of(record).prints_tensors_of_gpt2 && record.tensors && record.tensors->matrices > 0 &&
         record.tensors->vectors > 0;
}

std::optional<ModelSpec> shape_of_nanogpt(const RunRecord& record) {
  if (!counts_tensors(record)) return std::nullopt;
  const ParameterTensors& t = *record.tensors;
  const auto whole = [](double number, double most) {
    return number >= 1 && number <= most && number == std::floor(number);
  };
  const double layers = (t.matrices - 2) / 4;
  if (!whole(layers, 1e4)) return std::nullopt;
  // Gains alone; or with biases of norms and projections, 13 widths of them in each block.
  const bool plain = t.vectors == 2 * layers + 1, biased = t.vectors == 8 * layers + 2;
  const double width = t.vector_entries / (biased ? 13 * layers + 2 : 2 * layers + 1);
  if (!(plain || biased) || !whole(width, 1e6)) return std::nullopt;
  const double rows = t.matrix_entries / width - 12 * layers * width;  // of both tables
  const auto length = number_in(record, Setting::sequence_length), vocab = number_in(record, Setting::vocab);
  const double positions = length ? *length : vocab ? rows - *vocab : 1024;
  if (!whole(rows, 1e9) || !whole(positions, 1e9) || !whole(rows - positions, 1e8)) return std::nullopt;
  // What else the log says of the shape: a model that was loaded may be another than the settings'.
  const auto other = [&](Setting setting, double value) {
    const auto said = number_in(record, setting);
    return said && *said != value;
  };
  if (other(Setting::layers, layers) || other(Setting::width, width) ||
      other(Setting::vocab, rows - positions))
    return std::nullopt;
  ModelSpec model = find_model("gpt2");
  model.name = "shape as printed";
  model.layers = static_cast<std::int64_t>(layers);
  model.width = static_cast<std::int64_t>(width);
  model.vocab = static_cast<std::int64_t>(rows - positions);
  model.context = static_cast<std::int64_t>(positions);
  model.ffn = 4 * model.width;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = biased;
  // The number of heads changes neither parameters nor FLOPs: the width is theirs together.
  model.heads = static_cast<std::int64_t>(number_in(record, Setting::heads).value_or(1));
  if (model.heads < 1 || model.width % model.heads != 0) model.heads = 1;
  model.kv_heads = model.heads;
  model.head_dim = model.width / model.heads;
  try {
    check(model);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  const bool its_own = parameter_count(model).to_double() == t.matrix_entries + t.vector_entries;
  // 1,024 positions are the default of a line that may be lost: a count that denies them is not accused.
  const auto& counted = record[Setting::parameters];
  if (!length && !vocab && counted && !printed_of_nanogpt(model, *counted)) return std::nullopt;
  return its_own ? std::optional(model) : std::nullopt;
}

bool printed_of_nanogpt(const ModelSpec& model, const Printed& parameters) {
  const double all = parameter_count(model).to_double();
  return parameters.holds(all) ||
         parameters.holds(all - static_cast<double>(model.context) * static_cast<double>(model.width));
}

bool shape_whole(const RunRecord& record) {
  const Trainer& trainer = trainer_of(record);
  const bool of_all =
      trainer.counts_before_splitting || number_in(record, Setting::pipeline_parallel).value_or(1) == 1;
  return trainer.prints_whole_shape && of_all && record.mlp && !record.mlp->experts &&
         record.tied_embeddings && number_in(record, Setting::kv_heads);
}

}  // namespace assay::spec::audit
