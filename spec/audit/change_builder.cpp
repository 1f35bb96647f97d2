#include "spec/audit/change_builder.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {
namespace {

/// The setting or name that a change takes for another one; empty where it is none that an option states.
std::string_view changed_by(std::string_view id) {
  if (id == "gpus_other") return "gpus";
  if (id == "sequence_length_other") return "sequence_length";
  if (id == "micro_other") return "micro";
  if (id.starts_with("accumulation_") || id == "sequences_of_other_accumulation") return "accumulation";
  if (id == "batch_stated_other") return "sequences";
  if (id == "batch_performed" || id == "batch_of_lines" || id == "sequences_counted_other")
    return "sequences";
  if (id == "peak_other_gpu" || id == "device_other") return "gpu";
  if (id == "peak_other_dtype") return "dtype";
  if (id.starts_with("shape_") || id == "embedding_not_counted" || id == "head_counted_twice") return "model";
  return {};
}

}  // namespace

std::string held_against(const RunRecord& record, std::string_view name) {
  const GivenOption* const option = record.stated_for(name);
  if (!option) return "";
  std::string out = " (held against " + option->option + ", not the log";
  if (option->log_number) {
    if (option->log_number->line > 0)
      out += ", whose line " + std::to_string(option->log_number->line) + " says ";
    else
      out += ", which says ";
    out += shown(option->log_number->value, Unit::none);
  } else if (!option->log_text.empty()) {
    out += ", which says " + option->log_text;
  }
  return out + ")";
}

Change& ChangeBuilder::add(std::string id, std::string text, double cost,
                           const std::vector<Effect>& effects) {
  Change change;
  change.id = std::move(id);
  change.text = std::move(text) + held_against(e_.record, changed_by(change.id));
  change.cost = cost;
  if (known_of_trainer(e_) == change.id) change.cost = 0.2 - unknown_of_known;
  bool felt = false;
  for (const Effect& effect : effects) {
    change.factors[effect.relation] = effect.factor;
    felt |= effect.factor != 1 && has(effect.relation);
  }
  if (!felt) return ignored_ = std::move(change);
  out_.push_back(std::move(change));
  return out_.back();
}

void ChangeBuilder::also(Relation of, double factor, const std::vector<Effect>& effects,
                         const std::string& text) {
  for (Change& change : out_) {
    const bool has_own = std::any_of(effects.begin(), effects.end(), [&](const Effect& effect) {
      return change.factors[effect.relation] != 1;
    });
    if (has_own || std::abs(change.factors[of] / factor - 1) > 1e-7) continue;
    change.text += text;
    for (const Effect& effect : effects) change.factors[effect.relation] *= effect.factor;
  }
}

std::vector<Change> ChangeBuilder::finish() {
  rates_printed_ = std::any_of(e_.steps.begin(), e_.steps.end(),
                               [](const Step* step) { return usable((*step)[Field::tokens_per_second]); });
  std::vector<Change> merged;
  std::stable_sort(out_.begin(), out_.end(),
                   [](const Change& a, const Change& b) { return a.cost < b.cost; });
  for (Change& change : out_) {
    Change* same = nullptr;
    for (Change& other : merged)
      if (alike(change, other)) same = &other;
    if (!same)
      merged.push_back(std::move(change));
    else if (change.id != same->id && change.cost <= same->cost + 1 &&
             std::count(same->alternatives.begin(), same->alternatives.end(), change.text) == 0) {
      same->alternatives.push_back(change.text);
      same->alternative_ids.push_back(change.id);
    }
  }
  return merged;
}

bool ChangeBuilder::alike(const Change& a, const Change& b) const {
  // Where one corrects the rate, or the time of which it is made where none is printed, and the other what it
  // is held against, the log leaves two speeds.
  if (!rates_printed_ && std::abs(a.time / b.time - 1) > 2e-3) return false;
  if (std::abs(a.rate / b.rate - 1) > 2e-3 || std::abs(a.gpus / b.gpus - 1) > 2e-3) return false;
  for (std::size_t i = 0; i < relation_count; ++i)
    if (const auto relation = static_cast<Relation>(i); has(relation)) {
      const bool exact = relation == Relation::flops_per_token || relation == Relation::parameters ||
                         relation == Relation::ffn_flops_per_layer;
      if (std::abs(a.factors.values[i] / b.factors.values[i] - 1) > (exact ? 1e-7 : 2e-3)) return false;
    }
  return true;
}

}  // namespace assay::spec::audit
