// Windows of attention as config.json states them: one that every layer has is the model's; one of some
// layers alone is refused, unless no sequence is longer.
#include <algorithm>

#include "spec/model/config_json.hpp"

namespace assay::spec::config_json {

namespace {
using document::Item;
using document::Kind;

constexpr const char* sliding_layer = "sliding_attention";
/// Which layers have a window of attention.
enum class Windowed { none, some, all };

bool is_qwen(Family family) {
  return family == Family::qwen2 || family == Family::qwen3 || family == Family::qwen3_moe;
}

/// Of a Qwen2 or Qwen3 that uses its window.
Windowed windowed_layers_of_qwen(const Fields& fields, const ModelSpec& model) {
  std::int64_t windowed = std::max<std::int64_t>(model.layers - fields.integer("max_window_layers", 28), 0);
  if (const auto types = fields.find("layer_types")) {
    windowed = 0;
    for (std::size_t i = 0; i < types->size(); ++i) windowed += (*types)[i].text() == sliding_layer;
  }
  return windowed == 0 ? Windowed::none : windowed >= model.layers ? Windowed::all : Windowed::some;
}

/// As transformers reads the file (v5.23).
Windowed windowed_layers(const Fields& fields, const ModelSpec& model) {
  const Family family = model.family;
  if (is_mistral(fields) || family == Family::mixtral) return Windowed::all;
  if (!is_qwen(family)) return fields.find("sliding_window") ? Windowed::some : Windowed::none;
  // Such files keep a window size beside use_sliding_window = false.
  if (!fields.flag("use_sliding_window", false)) return Windowed::none;
  if (!fields.find("sliding_window") && fields.has("sliding_window")) return Windowed::none;
  return family == Family::qwen3_moe ? Windowed::all : windowed_layers_of_qwen(fields, model);
}
}  // namespace

void read_window(const Fields& fields, ModelSpec& model, std::optional<std::int64_t> longest,
                 std::vector<std::string>& named) {
  constexpr std::int64_t usual = 4096;  // of the classes of Mistral and the Qwens
  const Windowed layers = windowed_layers(fields, model);
  if (layers == Windowed::none) return;
  const bool stated = fields.find("sliding_window").has_value(),
             missing = (is_mistral(fields) || is_qwen(model.family)) && !fields.has("sliding_window");
  if (layers == Windowed::all && !stated && !missing) return;
  const std::int64_t window = stated ? fields.integer("sliding_window") : missing ? usual : 0;
  if (stated && window < 1)
    fields.refuse("\"sliding_window\" = " + std::to_string(window) + " must be at least 1, or null for none");
  if (layers == Windowed::all) {
    if (window < model.context) model.window = window;
    return;
  }
  if (longest.value_or(model.context) <= window) {
    named.push_back("sliding_window = " + std::to_string(window) +
                    " (it leaves nothing out of sequences of " +
                    std::to_string(longest.value_or(model.context)) + " tokens)");
    return;
  }
  const std::string most = std::to_string(window);
  const std::string within = window < 1 ? ""
                                        : "; sequences of up to " + most +
                                              " tokens lie within it: say that they are no longer (--seq " +
                                              most + "; of a run batch.sequence_length=" + most + ")";
  const bool flagged = fields.was_read("use_sliding_window");
  fields.refuse(quote(flagged ? "use_sliding_window" : "sliding_window") + ": a sliding attention window" +
                (!stated   ? " of a length that is not said"
                 : flagged ? " of some layers only"
                           : " under this model_type") +
                not_in_spec + within);
}

void refuse_other_layers(const Fields& fields, Family family) {
  const auto types = fields.find("layer_types");
  if (!types) return;
  if (!types->is(Kind::list)) types->wrong("an array");
  const bool may_slide =
      (family == Family::qwen2 || family == Family::qwen3) && fields.flag("use_sliding_window", false);
  for (std::size_t i = 0; i < types->size(); ++i) {
    const Item type = (*types)[i];
    if (!type.is(Kind::text) ||
        !(type.text() == "full_attention" || (may_slide && type.text() == sliding_layer)))
      fields.refuse("layer type " + type.shown() + not_in_spec);
  }
}

}  // namespace assay::spec::config_json
