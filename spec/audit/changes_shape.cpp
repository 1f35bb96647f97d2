// Another shape than the stated one: trainers fall back on their defaults where a setting does not reach the
// model, and print the parameters of what they built.
#include <cmath>
#include <utility>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

using R = Relation;

std::string as_text(std::int64_t n) { return shown(static_cast<double>(n), Unit::none); }

struct Part {
  std::string id, text;
  std::int64_t value = 0;
};

/// Inner widths that trainers choose where none is given: two thirds of 4 D for the three matrices of SwiGLU,
/// cut (llm_TII, model_config.py) or a multiple of 256 (Llama, model.py), and 4 D. The stated one first.
std::vector<Part> inner_widths(const ModelSpec& model) {
  const std::int64_t D = model.width, cut = 8 * D / 3;
  std::vector<Part> out = {{"", "", model.ffn}};
  const auto add = [&](const char* id, const std::string& how, std::int64_t value) {
    for (const Part& part : out)
      if (part.value == value || value < 1) return;
    out.push_back(
        {id, "an inner width of " + as_text(value) + " = " + how + ", not " + as_text(model.ffn), value});
  };
  const std::string two_thirds = "int(8 x " + as_text(D) + " / 3)";
  if (gated(model.mlp)) {
    add("ffn_two_thirds", two_thirds, cut);
    add("ffn_two_thirds_rounded", two_thirds + " rounded up to a multiple of 256", (cut + 255) / 256 * 256);
    add("ffn_two_thirds_rounded", two_thirds + " rounded down to a multiple of 256", cut / 256 * 256);
  }
  add("ffn_four_widths", "4 x " + as_text(D), 4 * D);
  return out;
}

std::vector<Part> key_value_heads(const ModelSpec& model) {
  std::vector<Part> out = {{"", "", model.kv_heads}};
  if (model.kv_heads != model.heads && !model.latent)
    out.push_back(
        {"kv_heads_as_heads",
         as_text(model.heads) + " key/value heads, one for each query head, not " + as_text(model.kv_heads),
         model.heads});
  return out;
}

std::string joined(const std::string& a, const char* between, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + between + b;
}

}  // namespace

void add_shapes(ChangeBuilder& b, const Evidence& e) {
  if (!e.model || e.model->experts) return;
  const double stated = parameter_count(*e.model).to_double();
  const auto &printed = e.record[Setting::parameters], &mlp = e.record[Setting::ffn_flops_per_layer];
  for (const Part& heads : key_value_heads(*e.model))
    for (const Part& inner : inner_widths(*e.model)) {
      const std::string id = joined(heads.id, "_and_", inner.id);
      if (id.empty()) continue;
      ModelSpec ran = *e.model;
      ran.kv_heads = heads.value;
      ran.ffn = inner.value;
      // A shape is reported where it makes the printed number, and all of it.
      const double count = parameter_count(ran).to_double(),
                   entries = ffn_entries(ran) / ffn_entries(*e.model);
      const bool fits = b.has(R::parameters) ? wide(*printed).holds(count)
                        : b.has(R::ffn_flops_per_layer) && e.sequence_length
                            ? wide(*mlp).meets(exact_interval(2 * ffn_entries(ran)) * *e.sequence_length)
                            : false;
      if (!fits) continue;
      Evidence other = e;
      other.model = ran;
      const std::string& convention = e.record.format.convention;
      const auto here = counted_flops(e, convention), there = counted_flops(other, convention);
      const double x = here && there ? there->middle() / here->middle() : 1;
      const double made = b.has(R::flops_per_token) ? 1 : x;
      const bool both = !heads.id.empty() && !inner.id.empty();
      Change& change =
          b.add(id, "another shape ran: " + joined(heads.text, ", and ", inner.text), both ? 3 : 2.7,
                {{R::parameters, count / stated},
                 {R::ffn_flops_per_layer, entries},
                 {R::flops_per_token, x},
                 {R::flops_rate, made},
                 {R::mfu, made},
                 {R::flops_rate_of_batch, made},
                 {R::mfu_of_batch, made}});
      change.model = std::move(ran);
    }
}

}  // namespace assay::spec::audit
