// Counts that may be of something else: FLOPs, parameters, memory and expected rate of another number of
// GPUs.
#include <algorithm>
#include <cmath>
#include <vector>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

using R = Relation;

namespace {

/// Of another model, or of other layers than those of the shape that the log prints whole.
void add_other_models(ChangeBuilder& b, const Evidence& e) {
  const auto& printed = e.record[Setting::parameters];
  if (e.model_basis != whole_shape || !b.has(R::parameters)) return;
  const double count = count_of_shape(e, *e.model);
  std::string others;
  double of_other = 0;
  for (const std::string& name : model_names()) {
    const ModelSpec model = find_model(name);
    if (model.layers == e.model->layers && model.width == e.model->width) continue;
    std::vector<double> counts = counts_beside_positions(model, true);
    if (e.trainer.counted != Counted::beside_positions || counts.empty()) counts = {count_of_shape(e, model)};
    for (const double number : counts) {
      if (number == count || !wide(*printed).holds(number)) continue;
      others += (others.empty() ? "" : ", or ") + name + "'s";
      of_other = number;
      break;
    }
  }
  if (of_other > 0)
    b.add("parameters_of_other_model", "the parameters are another model's: " + others, 2.8,
          {{R::parameters, of_other / count}});
  ModelSpec plain = *e.model, more = *e.model;
  plain.vocab = find_model("gpt2").vocab;
  if (const double number = count_of_shape(e, plain);
      e.trainer.counted == Counted::beside_positions && number < count && wide(*printed).holds(number))
    b.add("vocabulary_not_padded",
          "the parameters are those of a vocabulary of " +
              shown(static_cast<double>(plain.vocab), Unit::none) + ", not of the " +
              shown(static_cast<double>(e.model->vocab), Unit::none) + " that the tensors have",
          2.9, {{R::parameters, number / count}});
  ++more.layers;
  const double of_layer = count_of_shape(e, more) - count, stated = static_cast<double>(e.model->layers);
  const double least = std::ceil((wide(*printed).low - count) / of_layer + stated),
               most = std::floor((wide(*printed).high - count) / of_layer + stated);
  if (least == most && least >= 1 && least != stated)
    b.add("layers_other",
          "the parameters are those of " + shown(least, Unit::none) + " layers, not " +
              shown(stated, Unit::none),
          3, {{R::parameters, 1 + (least - stated) * of_layer / count}});
}

/// Whether one GPU of that kind, or all that ran, have the peak that the log prints.
bool has_printed_peak(const Evidence& e, const Gpu& gpu) {
  const Printed* const printed = e.printed_peak();
  const Peak* const peak = gpu.peak(e.precision);
  if (!printed || !peak) return false;
  const auto near = [&](double x) { return std::abs(printed->value / x - 1) < off_by_three_digits; };
  return near(peak->dense) || near(peak->dense * e.gpus.value_or(1));
}

/// GPUs of another memory than `named`, reported together where they have as much; of these only such as have
/// the printed peak, if any have.
void add_other_devices(ChangeBuilder& b, const Evidence& e, const Gpu& named) {
  constexpr double as_much = 0.01, apart = 0.12;
  std::vector<const Gpu*> left;
  for (const Gpu& other : gpus())
    if (other.memory && std::abs(other.memory->value / named.memory->value - 1) > apart)
      left.push_back(&other);
  while (!left.empty()) {
    const double memory = left.front()->memory->value;
    const auto end = std::stable_partition(left.begin(), left.end(), [&](const Gpu* gpu) {
      return std::abs(gpu->memory->value / memory - 1) < as_much;
    });
    std::vector<const Gpu*> alike(left.begin(), end);
    left.erase(left.begin(), end);
    const auto of_peak = std::stable_partition(alike.begin(), alike.end(),
                                               [&](const Gpu* gpu) { return has_printed_peak(e, *gpu); });
    if (of_peak != alike.begin()) alike.erase(of_peak, alike.end());
    constexpr std::size_t most = 4;
    std::string names;
    for (std::size_t i = 0; i < alike.size() && i < most; ++i)
      names += (i == 0 ? "" : i + 1 == alike.size() ? " or " : ", ") + alike[i]->name;
    if (alike.size() > most) names += " or " + std::to_string(alike.size() - most) + " others";
    b.add("device_other", "the memory is that of another GPU: " + names, 3,
          {{R::device_memory, memory / named.memory->value}});
  }
}

}  // namespace

void add_counts(ChangeBuilder& b, const Evidence& e) {
  const auto counted = counted_flops(e);
  const bool printed = b.has(R::flops_per_token);
  // A count that is printed nowhere shows in what is made of it.
  const auto candidate = [&](const std::string& id, const std::string& text, double x, double cost) {
    if (std::abs(x - 1) < 1e-4) return;
    if (printed) b.add(id, text, cost, {{R::flops_per_token, x}});
    b.add(id, printed ? "FLOP/s are made with another count than printed: " + text : text,
          cost + (printed ? 1.5 : 0),
          {{R::flops_rate, x}, {R::flops_rate_of_batch, x}, {R::mfu, x}, {R::mfu_of_batch, x}});
  };
  std::string base = e.record.format.convention;
  if (!counted_flops(e, base)) base = "exact";
  for (const Miscount& miss : miscounts(e, base)) candidate(miss.id, miss.text, miss.factor, 2.5);
  // Where none is stated, every convention is allowed already.
  const bool any = e.record.format.convention.empty() && !printed && !e.of(Setting::flops_per_token);
  if (const auto own = counted_flops(e, base); own && !any)
    for (const CountedFlops& other : counted)
      if (other.convention != base)
        candidate("convention_other", "FLOPs are counted by the convention " + other.convention,
                  other.flops.middle() / own->middle(), 2.7);
  if (!e.model) {
    if (e.record[Setting::parameters_nonembedding])
      b.add("embedding_counted", "\"without embedding\" counts the embedding", 2.5,
            {{R::parameters_nonembedding, 1.2}});
    return;
  }
  const double total = e.trainer.counted == Counted::beside_positions ? count_of_shape(e, *e.model)
                                                                      : parameter_count(*e.model).to_double();
  const double table = static_cast<double>(e.model->vocab) * static_cast<double>(e.model->width);
  const auto& printed_count = e.record[Setting::parameters];
  const double all = usable(printed_count) ? printed_count->value : total;
  b.add("embedding_counted", "\"without embedding\" counts the embedding", 2.5,
        {{R::parameters_nonembedding, all / (all - table)}});
  b.add("embedding_not_counted", "the embedding is left out", 2.5,
        {{R::parameters, (total - table) / total}});
  b.add("head_counted_twice", "a table of embeddings is counted once more", 3,
        {{R::parameters, (total + table) / total}});
  b.add("embeddings_not_counted", "embedding and head are left out", 3,
        {{R::parameters, (total - 2 * table) / total}});
  add_other_models(b, e);
  const double gains = static_cast<double>(e.model->layers) * static_cast<double>(e.model->width);
  b.add("gains_not_counted", "one norm gain per layer is not counted, or not there", 2.5,
        {{R::parameters, (total - gains) / total}});
  b.add("gains_not_counted", "no norm gain is counted, or there is none", 3,
        {{R::parameters, (total - 2 * gains - static_cast<double>(e.model->width)) / total}});
  for (const double u : {1.048576, 1 / 1.048576})
    b.add("parameters_unit", "M is 2^20 in one place, 10^6 in the other", 3.4, {{R::parameters, u}});
}

void add_devices(ChangeBuilder& b, const Evidence& e) {
  b.add("device_memory_unit", "GiB is printed as GB", 2, {{R::device_memory, 1e9 / 1073741824.0}});
  b.add("device_memory_unit", "GB is printed as GiB", 2, {{R::device_memory, 1073741824.0 / 1e9}});
  if (e.gpu.gpu && e.gpu.gpu->memory) add_other_devices(b, e, *e.gpu.gpu);
  const double gpus = e.gpus.value_or(1);
  if (gpus > 1) {
    b.add("device_memory_of_all", "the memory is that of all GPUs", 3, {{R::device_memory, gpus}});
    b.add("expected_rate_of_one", "the expected rate is that of one GPU", 3, {{R::expected_rate, 1 / gpus}});
    b.add("expected_rate_of_all", "the expected rate is that of all GPUs, the peak that of one", 3,
          {{R::expected_rate, gpus}});
  }
  if (e.model && gated(e.model->mlp))
    b.add("ffn_gate_not_counted", "the FLOPs of a layer's MLP leave the matrix of its gate out", 3,
          {{R::ffn_flops_per_layer, 2.0 / 3}});
  b.add("expected_rate_at_peak", "the expected rate is at 100 % MFU", 3, {{R::expected_rate, 2}});
}

}  // namespace assay::spec::audit
