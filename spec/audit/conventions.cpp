#include "spec/audit/conventions.hpp"

#include <algorithm>

#include "spec/flops/conventions.hpp"

namespace assay::spec::audit {
namespace {

std::optional<std::int64_t> sequence_length(const Evidence& e) {
  if (e.sequence_length && e.sequence_length->low >= 1 && e.sequence_length->high <= 1e9)
    return static_cast<std::int64_t>(e.sequence_length->middle());
  return std::nullopt;
}

/// 6 N + 12 L H Q T from printed numbers; N may be rounded.
std::optional<Interval> palm_from_prints(const Evidence& e) {
  const auto N = e.of(Setting::parameters), L = e.of(Setting::layers), D = e.of(Setting::width),
             H = e.of(Setting::heads), Q = e.of(Setting::head_dim);
  if (!N || !L || !e.sequence_length || (!D && !(H && Q))) return std::nullopt;
  const Interval heads = H && Q ? *H * *Q : *D;
  return exact_interval(6) * *N + exact_interval(12) * *L * heads * *e.sequence_length;
}

/// 6 (N - V D) + 12 L D T, N where embedding and head are tied, from what torchtitan's header prints
/// (utils.py, get_nparams_and_flops): of its dense models alone, for a header says of the others neither
/// their experts nor the width of their heads.
std::optional<Interval> torchtitan_from_prints(const Evidence& e) {
  const std::string& model = e.record.model;
  const auto N = e.of(Setting::parameters), L = e.of(Setting::layers), D = e.of(Setting::width),
             V = e.of(Setting::vocab);
  const bool dense = model.starts_with("llama3 ") || model.starts_with("llama2 ");
  if (!e.trainer.flops_of_printed_count || !dense || !N || !L || !D || !V || !e.sequence_length)
    return std::nullopt;
  // A table that is the head, too, is multiplied.
  const Interval tables = e.record.tied_embeddings.value_or(false) ? exact_interval(0) : *V * *D;
  return exact_interval(6) * (*N - tables) + exact_interval(12) * *L * *D * *e.sequence_length;
}

/// 12 L (H Q) T: what full attention adds to a token.
std::optional<double> attention(const Evidence& e) {
  if (!e.sequence_length) return std::nullopt;
  if (e.model)
    return 12.0 * static_cast<double>(e.model->layers) * static_cast<double>(e.model->heads) *
           static_cast<double>(e.model->head_dim) * e.sequence_length->middle();
  const auto L = e.of(Setting::layers), D = e.of(Setting::width);
  return L && D ? std::optional(12 * L->middle() * D->middle() * e.sequence_length->middle()) : std::nullopt;
}

/// The parameters that nanoGPT's MFU rests on: those that it prints, to two digits of a million (model.py,
/// get_num_params). Where the log does not hold them, or they are those of all parameters, those of the model
/// without its positions, with biases or without, its vocabulary rounded up or not.
std::optional<Interval> parameters_of_nanogpt(const Evidence& e) {
  // A number that contradicts the tensors is not what its FLOPs rest on.
  const auto printed = e.model_basis == whole_shape ? std::nullopt : e.of(Setting::parameters);
  const std::vector<double> counts = counts_beside_positions(*e.model, true);
  if (counts.empty() || (printed && !printed->holds(parameter_count(*e.model).to_double()))) return printed;
  Interval out = printed.value_or(exact_interval(counts.front()));
  for (const double count : counts) out = {std::min(out.low, count), std::max(out.high, count)};
  return out;
}

}  // namespace

std::optional<Interval> counted_flops(const Evidence& e, std::string_view name) {
  const auto T = sequence_length(e);
  const auto convention = convention_from(name);
  if (!T || !convention) return std::nullopt;
  if (e.model && *convention == Convention::nanogpt_legacy_v1 &&
      e.trainer.counted == Counted::beside_positions)
    if (const auto N = parameters_of_nanogpt(e))
      return exact_interval(6) * *N + exact_interval(*attention(e));
  const bool palm = *convention == Convention::palm_total || *convention == Convention::nanogpt_legacy_v1;
  const auto printed = e.of(Setting::parameters);
  // Where a trainer counts parameters in its own way, its FLOPs rest on its own number; not where the number
  // contradicts the shape that the log prints whole.
  if (e.model && palm && printed && e.model_basis != whole_shape && !e.model->experts &&
      !printed->holds(parameter_count(*e.model).to_double()))
    if (const auto full = attention(e)) return exact_interval(6) * *printed + exact_interval(*full);
  if (e.model) {
    const auto count = flops_per_token(*convention, *e.model, *T);
    if (count.flops) return exact_interval(count.flops->to_double());
  }
  if (*convention == Convention::torchtitan) return torchtitan_from_prints(e);
  return palm ? palm_from_prints(e) : std::nullopt;
}

std::vector<CountedFlops> counted_flops(const Evidence& e) {
  std::vector<CountedFlops> out;
  for (const ConventionFacts& facts : conventions())
    if (const auto flops = counted_flops(e, facts.name)) out.push_back({std::string(facts.name), *flops});
  return out;
}

std::optional<Interval> any_convention(const Evidence& e) {
  std::optional<Interval> out;
  for (const CountedFlops& counted : counted_flops(e))
    out = out ? Interval{std::min(out->low, counted.flops.low), std::max(out->high, counted.flops.high)}
              : counted.flops;
  return out;
}

std::optional<Interval> flops_at_one_peak(const Evidence& e, const std::optional<Interval>& flops) {
  const bool narrow = e.precision == Precision::fp8 || e.precision == Precision::fp4;
  if (!flops || !e.trainer.peak_of_each_product || !narrow) return flops;
  const auto pairs = attention(e);
  const Peak* const own = e.gpu.gpu ? e.gpu.gpu->peak(e.precision) : nullptr;
  const Peak* const wide = e.gpu.gpu ? e.gpu.gpu->peak(Precision::bf16) : nullptr;
  if (!e.model || !pairs || !own || !wide) return std::nullopt;
  const double head = 6 * static_cast<double>(e.model->vocab) * static_cast<double>(e.model->width),
               slower = head + *pairs / 2;  // the causal half
  return *flops + exact_interval(slower * (own->dense / wide->dense - 1));
}

std::vector<Miscount> miscounts(const Evidence& e, std::string_view convention) {
  std::vector<Miscount> out = {{"flops_forward_only", "only the forward pass is counted", 1.0 / 3},
                               {"flops_with_recompute", "a recomputed forward pass is counted", 4.0 / 3}};
  const auto counted = counted_flops(e, convention);
  if (!counted) return out;
  const auto which = convention_from(convention);
  const double all = counted->middle();
  const auto add = [&](const char* id, const char* text, double flops) {
    if (flops > 0 && std::abs(flops / all - 1) > 1e-4) out.push_back({id, text, flops / all});
  };
  const bool counts_attention = !convention.starts_with("6n");
  if (const auto full = attention(e); full && counts_attention) {
    const bool causal = which == Convention::exact || which == Convention::megatron ||
                        which == Convention::llmc || which == Convention::llmq ||
                        which == Convention::surogate;
    const double own = causal ? *full / 2 : *full;
    add("attention_not_counted", "attention is not counted", all - own);
    if (causal)
      add("attention_full", "attention over all pairs is counted, not the causal half", all + own);
    else
      add("attention_causal", "the causal half of attention is counted, not all pairs", all - own / 2);
  }
  if (const auto T = sequence_length(e); e.model && e.model->experts && which && T) {
    ModelSpec all_active = *e.model;
    all_active.experts->active = all_active.experts->count;
    all_active.experts->active_groups = all_active.experts->groups;
    if (const auto count = flops_per_token(*which, all_active, *T); count.flops)
      add("experts_all_counted", "all experts are counted, not those that a token is routed to",
          all * count.flops->to_double() / flops_per_token(*which, *e.model, *T).flops->to_double());
  }
  if (e.model) {
    const double table = 6.0 * static_cast<double>(e.model->vocab) * static_cast<double>(e.model->width);
    const bool counts_table = which == Convention::palm_total || which == Convention::nanogpt_legacy_v1 ||
                              which == Convention::kempnerforge_published || which == Convention::llmc ||
                              convention == "6n";
    if (counts_table)
      add("embedding_not_counted", "the embedding is not counted", all - table);
    else
      add("embedding_counted", "the input embedding is counted", all + table);
  }
  return out;
}

}  // namespace assay::spec::audit
