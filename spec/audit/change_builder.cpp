#include "spec/audit/change_builder.hpp"

#include <algorithm>
#include <cmath>

namespace assay::spec::audit {

Change& ChangeBuilder::add(std::string id, std::string text, double cost,
                           const std::vector<Effect>& effects) {
  Change change;
  change.id = std::move(id);
  change.text = std::move(text);
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

std::vector<Change> ChangeBuilder::finish() {
  std::vector<Change> merged;
  std::stable_sort(out_.begin(), out_.end(),
                   [](const Change& a, const Change& b) { return a.cost < b.cost; });
  for (Change& change : out_) {
    Change* same = nullptr;
    for (Change& other : merged)
      if (alike(change, other)) same = &other;
    if (!same)
      merged.push_back(std::move(change));
    else if (change.id != same->id && change.cost <= same->cost + 1)
      same->alternatives.push_back(change.text);
  }
  return merged;
}

bool ChangeBuilder::alike(const Change& a, const Change& b) const {
  // Where one corrects the rate and the other what it is held against, the log leaves two speeds.
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
