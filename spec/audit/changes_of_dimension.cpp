// A count of parameters that the printed shape does not make, but the shape does with one dimension of it
// changed, or a known model: that one ran, where the FLOPs go with it.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/whole_shape.hpp"

namespace assay::spec::audit {

using R = Relation;

namespace {

struct Ran {
  ModelSpec model;
  std::string text;
};

bool is_model(const ModelSpec& model) {
  try {
    check(model);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool is_known(const ModelSpec& model) {
  const std::vector<std::string> names = model_names();
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const ModelSpec known = find_model(name);
    return known.layers == model.layers && known.width == model.width && known.heads == model.heads &&
           known.kv_heads == model.kv_heads && known.ffn == model.ffn && known.vocab == model.vocab;
  });
}

/// Shapes of the printed count that differ from the stated one in one dimension, and known models of that
/// count.
class Shapes {
 public:
  Shapes(const Evidence& e, const Printed& printed) : e_(e), printed_(printed), stated_(*e.model) {}

  std::vector<Ran> of_that_count() {
    // The count grows by as much with each layer, each entry of the MLP, of the vocabulary and each pair of
    // heads.
    linear(&ModelSpec::layers, " layers, not ");
    linear(&ModelSpec::ffn, " entries of the MLP, not ");
    linear(&ModelSpec::vocab, " words, not ");
    if (!stated_.latent) linear(&ModelSpec::kv_heads, " heads of keys and values, not ");
    widths();
    known();
    return std::move(out_);
  }

 private:
  bool fits(const ModelSpec& model) const {
    return is_model(model) && wide(printed_).holds(count_of_shape(e_, model));
  }
  void add(const ModelSpec& model, std::int64_t now, const char* what, std::int64_t before) {
    if (now != before && fits(model))
      out_.push_back({model, "the model that ran has " + shown(static_cast<double>(now), Unit::none) + what +
                                 shown(static_cast<double>(before), Unit::none) +
                                 ": count and FLOPs go with that"});
  }
  void linear(std::int64_t ModelSpec::*dimension, const char* what) {
    const std::int64_t before = stated_.*dimension;
    const double count = count_of_shape(e_, stated_);
    ModelSpec changed = stated_;
    changed.*dimension = 2 * before;  // any other number that may be one of a model
    const double of_one = (count_of_shape(e_, changed) - count) / static_cast<double>(before);
    if (!(of_one > 0)) return;
    const double now = static_cast<double>(before) + (printed_.value - count) / of_one;
    if (!(now >= 1 && now < 1e9) || now != std::floor(now)) return;
    changed.*dimension = static_cast<std::int64_t>(now);
    add(changed, changed.*dimension, what, before);
  }
  /// Heads stay as wide, or as many.
  void widths() {
    constexpr std::int64_t step = 64, most = 32'768;
    for (std::int64_t width = step; width <= most; width += step) {
      ModelSpec changed = stated_;
      changed.width = width;
      add(changed, width, " entries of the residual stream, not ", stated_.width);
      if (width % stated_.heads != 0) continue;
      changed.head_dim = width / stated_.heads;
      if (changed.head_dim != stated_.head_dim)
        add(changed, width, " entries of the residual stream, not ", stated_.width);
    }
  }
  void known() {
    std::string names;
    ModelSpec one;
    for (const std::string& name : model_names()) {
      ModelSpec model = find_model(name);
      if (!fits(model) || (model.layers == stated_.layers && model.width == stated_.width)) continue;
      names += (names.empty() ? "" : " or ") + name;
      one = std::move(model);
    }
    if (!names.empty())
      out_.push_back({one, "the model that ran is " + names + ", not the shape that is printed"});
  }

  const Evidence& e_;
  const Printed& printed_;
  const ModelSpec& stated_;
  std::vector<Ran> out_;
};

}  // namespace

void add_other_dimension(ChangeBuilder& b, const Evidence& e) {
  const auto& printed = e.record[Setting::parameters];
  if (e.model_basis != whole_shape || !b.has(R::parameters) || e.model->experts) return;
  const bool flops_shown = b.has(R::flops_rate) || b.has(R::flops_rate_of_batch) || b.has(R::mfu) ||
                           b.has(R::mfu_of_batch) || b.has(R::flops_per_token);
  if (!flops_shown) return;  // the count alone: changes_of_counts.cpp
  const std::string stated = e.record.format.convention,
                    convention = counted_flops(e, stated) ? stated : "exact";
  const auto before = counted_flops(e, convention);
  if (!before) return;
  const double made = count_of_shape(e, *e.model);
  Evidence ran = e;
  for (const Ran& one : Shapes(e, *printed).of_that_count()) {
    ran.model = one.model;
    const auto now = counted_flops(ran, convention);
    if (!now) continue;
    const double x = now->middle() / before->middle();
    // Cheaper than the count by itself with another mistake beside it, dearer than one slip; a shape that is
    // known is likelier than one that nobody trains.
    constexpr double of_known = 2.8, of_any = 3;
    b.add("shape_other", one.text, is_known(one.model) ? of_known : of_any,
          {{R::parameters, count_of_shape(e, one.model) / made},
           {R::flops_per_token, x},
           {R::flops_rate, x},
           {R::flops_rate_of_batch, x},
           {R::mfu, x},
           {R::mfu_of_batch, x}})
        .model = one.model;
  }
}

}  // namespace assay::spec::audit
