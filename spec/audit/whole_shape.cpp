#include "spec/audit/whole_shape.hpp"

#include <exception>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

bool any_count_fits(ModelSpec model, const Printed& parameters) {
  const double positions = static_cast<double>(model.context) * static_cast<double>(model.width);
  for (const bool biased : {false, true}) {
    model.qkv_bias = model.output_bias = model.mlp_bias = biased;
    model.norm = biased ? Norm::layer_norm : model.norm;
    model.norm_bias = biased;
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
  if (record.format.name != "llmc" || !layers || !width || !heads || *layers > 1e4 || *width > 1e6 ||
      *heads > 1e5 || at(Setting::vocab) != static_cast<double>(model.vocab))
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

bool shape_whole(const RunRecord& record) {
  const bool prints_all = record.format.name == "kempnerforge" || record.format.name == "megatron";
  return prints_all && record.mlp && !record.mlp->experts && record.tied_embeddings &&
         number_in(record, Setting::kv_heads) &&
         number_in(record, Setting::pipeline_parallel).value_or(1) == 1;
}

}  // namespace assay::spec::audit
