// Which model a log is of: defined, named, put together from its settings, or the only one of its counts.
#include <algorithm>
#include <cmath>

#include "spec/audit/counted_model.hpp"
#include "spec/audit/evidence.hpp"
#include "spec/audit/whole_shape.hpp"
#include "spec/error.hpp"

namespace assay::spec::audit {

namespace {

/// Models that differ in name and context alone: a count of parameters need not tell them apart.
bool same_blocks(const ModelSpec& a, const ModelSpec& b) {
  return a.layers == b.layers && a.width == b.width && a.heads == b.heads && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.ffn == b.ffn && a.vocab == b.vocab &&
         a.tied_embeddings == b.tied_embeddings && a.positions == b.positions &&
         a.experts.has_value() == b.experts.has_value();
}

/// By the name of the one built-in model that has these blocks.
void name_as_built_in(ModelSpec& model) {
  std::string name;
  for (const ModelSpec& known : known_models()) {
    if (!same_blocks(model, known) || model.mlp != known.mlp || model.qk_norm != known.qk_norm) continue;
    if (!name.empty()) return;
    name = known.name;
  }
  if (!name.empty()) model.name = name;
}

/// A trainer's own preset, where another one wrote the log: of models that are alike, one of the field's.
bool of_another_trainer(const ModelSpec& model, const RunRecord& record) {
  return std::any_of(trainers().begin(), trainers().end(), [&](const Trainer& one) {
    return one.name != record.format.name && model.name.starts_with(std::string(one.name) + "-");
  });
}

bool built_in(const std::string& name) {
  const std::vector<std::string> names = model_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "llama3 8B", as torchtitan says, is llama3-8b.
std::string as_named_here(std::string name) {
  for (char& c : name)
    c = c == ' ' || c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

/// `model` in the dimensions that the user stated beside its name; not those that a log prints. Errors:
/// UserError(usage) for dimensions that make no model.
ModelSpec as_stated(ModelSpec model, const RunRecord& record) {
  std::string options;
  const bool alike = model.kv_heads == model.heads;
  for (const auto& [setting, dimension] :
       {std::pair(Setting::layers, &ModelSpec::layers), std::pair(Setting::width, &ModelSpec::width),
        std::pair(Setting::heads, &ModelSpec::heads), std::pair(Setting::kv_heads, &ModelSpec::kv_heads),
        std::pair(Setting::head_dim, &ModelSpec::head_dim), std::pair(Setting::ffn, &ModelSpec::ffn),
        std::pair(Setting::vocab, &ModelSpec::vocab)}) {
    const auto& stated = record[setting];
    if (!stated || !record.stated_for(setting)) continue;
    const auto number = static_cast<std::int64_t>(std::llround(stated->value));
    if (model.*dimension == number) continue;
    options += (options.empty() ? "" : ", ") + record.stated_for(setting)->option;
    model.*dimension = number;
  }
  if (options.empty()) return model;
  // Attention whose heads each have keys and values of their own has them at any number of heads.
  if (alike && !record.stated_for(Setting::kv_heads)) model.kv_heads = model.heads;
  const std::string name = model.name;
  model.name += " of stated dimensions";
  try {
    check(model);
  } catch (const std::exception& error) {
    throw UserError(ExitCode::usage, options + ": with these " + name + " is no model (" + error.what() +
                                         "); state dimensions that go together, or the model alone");
  }
  return model;
}

}  // namespace

const ModelSpec* model_called(const RunRecord& record) {
  if (record.model.empty()) return nullptr;
  const std::string name = as_named_here(record.model);
  for (const ModelSpec& model : known_models())
    if (model.name == name) return &model;
  return nullptr;
}

std::optional<ModelSpec> model_of(const RunRecord& record, std::string& basis) {
  const auto at = [&](Setting setting) { return number_in(record, setting); };
  const Trainer& trainer = trainer_of(record);
  const bool padded = trainer.counted == Counted::beside_positions;
  const auto fits = [&](const ModelSpec& model) {
    const auto same = [&](Setting setting, std::int64_t value) {
      return !at(setting) || *at(setting) == static_cast<double>(value);
    };
    return same(Setting::layers, model.layers) && same(Setting::width, model.width) &&
           same(Setting::heads, model.heads) && same(Setting::kv_heads, model.kv_heads) &&
           same(Setting::head_dim, model.head_dim) && same(Setting::ffn, model.ffn) &&
           (same(Setting::vocab, model.vocab) ||
            (padded && same(Setting::vocab, (model.vocab + 63) / 64 * 64)));
  };
  const bool stated = record.stated_for("model") != nullptr;
  if (record.definition && !stated) {
    basis = "defined";
    return record.definition;
  }
  if (!record.model_file.empty() && !stated) return std::nullopt;
  if (!record.model.empty()) {
    basis = "named";
    // A file is looked for only where the command line names it: a log's is another machine's.
    if (stated || built_in(record.model)) {
      std::optional<ModelSpec> found;
      try {
        const auto length = at(Setting::sequence_length);
        found = find_model(record.model, length && *length >= 1 && *length < 1e12
                                             ? std::optional(static_cast<std::int64_t>(*length))
                                             : std::nullopt);
      } catch (const std::exception&) {
        // A foreign log's own name for a model: go on with what it prints of it.
      }
      if (found) return as_stated(*std::move(found), record);
    }
    const auto& parameters = record[Setting::parameters];
    if (const ModelSpec* model = model_called(record);
        model && fits(*model) && usable(parameters) && count_fits(*model, *parameters) == CountFit::exactly)
      return *model;
  }
  const auto layers = at(Setting::layers), width = at(Setting::width), heads = at(Setting::heads),
             ffn = at(Setting::ffn), vocab = at(Setting::vocab);
  // Shapes that no machine holds are not models, whatever a log says.
  const auto held = [](const std::optional<double>& n, double most) { return n && *n >= 1 && *n <= most; };
  if (held(layers, 1e4) && held(width, 1e6) && held(heads, 1e5) && held(ffn, 1e7) && held(vocab, 1e8) &&
      at(Setting::kv_heads).value_or(1) <= 1e5 && at(Setting::head_dim).value_or(1) <= 1e5 &&
      at(Setting::sequence_length).value_or(1) <= 1e9) {
    ModelSpec model;
    const auto whole = [](double number) { return static_cast<std::int64_t>(number); };
    model.name = "shape as printed";
    model.vocab = whole(*vocab);
    model.width = whole(*width);
    model.layers = whole(*layers);
    model.heads = whole(*heads);
    model.kv_heads = whole(at(Setting::kv_heads).value_or(*heads));
    model.head_dim = whole(at(Setting::head_dim).value_or(*width / *heads));
    model.ffn = whole(*ffn);
    model.context = whole(at(Setting::sequence_length).value_or(2048));
    if (record.norm) model.norm = *record.norm, model.norm_bias = *record.norm == Norm::layer_norm;
    if (record.mlp) {
      model.mlp = record.mlp->mlp;
      model.experts = record.mlp->experts;
    } else if (trainer.trains_several_mlps) {
      // By its widths alone it may be any.
      return std::nullopt;
    }
    basis = model.name;
    const auto& count = record[Setting::parameters];
    auto counted = as_counted(model, at(Setting::kv_heads).has_value(), at(Setting::head_dim).has_value(),
                              record.tied_embeddings, record.qk_norm, record.norm, count,
                              shape_whole(record) && usable(count));
    if (counted && usable(count) && !any_count_fits(*counted, *count, record.norm)) {
      // Where the name, the vocabulary and the count are those of one model, another dimension is wrong.
      const ModelSpec* const called = model_called(record);
      const bool vocabulary_known =
          called && called->vocab == model.vocab && count_fits(*called, *count) == CountFit::exactly;
      if (const auto that_ran = vocabulary_of(*counted, *count);
          trainer.vocabulary_of_tokenizer && !vocabulary_known && that_ran &&
          !of_other_dimension(*counted, *count, *that_ran)) {
        counted->vocab = *that_ran;
        basis = vocabulary_of_count;
        return counted;
      }
      // Where the inner width is not printed, a known model of every size that is, and of that count,
      // stands.
      const ModelSpec* preset = nullptr;
      for (const ModelSpec& known : known_models())
        if (trainer.hides_width_of_mlp && known.layers == model.layers && known.width == model.width &&
            known.heads == model.heads && known.kv_heads == model.kv_heads && known.vocab == model.vocab &&
            count_fits(known, *count) == CountFit::exactly &&
            (!preset || of_another_trainer(*preset, record)))
          preset = &known;
      if (preset) return basis = "parameters as printed", *preset;
      basis = whole_shape;
    }
    if (counted && shape_whole(record)) name_as_built_in(*counted);
    return counted;
  }
  const auto& parameters = record[Setting::parameters];
  std::optional<ModelSpec> tensors = shape_of_nanogpt(record);
  if (tensors && (!usable(parameters) || !printed_of_nanogpt(*tensors, *parameters))) {
    basis = usable(parameters) ? whole_shape : tensors->name;
    return tensors;
  }
  if (!usable(parameters)) return std::nullopt;
  const int dimensions = layers.has_value() + width.has_value() + heads.has_value() + ffn.has_value();
  std::optional<ModelSpec> found, near;
  const auto printed_beside_positions = [&](const ModelSpec& model) {
    const auto counts = counts_beside_positions(model, padded);
    return padded &&
           std::any_of(counts.begin(), counts.end(), [&](double n) { return wide(*parameters).holds(n); });
  };
  for (const ModelSpec& model : known_models()) {
    if (!fits(model)) continue;
    const CountFit fit = count_fits(model, *parameters);
    if (fit == CountFit::exactly || printed_beside_positions(model)) {
      if (found && !same_blocks(*found, model)) return std::nullopt;
      if (!found || (of_another_trainer(*found, record) && !of_another_trainer(model, record))) found = model;
    } else if (dimensions >= 3 && fit != CountFit::no) {
      near = model;
    }
  }
  if (const auto shapes = shapes_of_llmc(record); !shapes.empty()) {
    const auto of_that_count = [&](const ModelSpec& shape) { return any_count_fits(shape, *parameters); };
    const auto shape = std::find_if(shapes.begin(), shapes.end(), of_that_count);
    if (shape == shapes.end()) return basis = whole_shape, shapes.front();
    if (!found && !near) near = *shape;
  }
  if (!found && !near) near = tensors;
  if (found) basis = "parameters as printed";
  if (!found && near) basis = "shape as printed";
  return found ? found : near;
}

}  // namespace assay::spec::audit
