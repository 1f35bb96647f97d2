#include "spec/audit/countings.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/flops/conventions.hpp"

namespace assay::spec::audit {
namespace {

/// Megatron-DeepSpeed's count (megatron/utils.py, throughput_calculator) over Megatron-LM's: 24 f L D^2 (1 +
/// T / 6 D + V / 16 L D) of a token, f = 4 with activation checkpointing and 3 without, all pairs, whatever
/// the MLP and the heads are; V rounded up to what its ranks of tensor parallelism divide, of each number of
/// them that one host can hold where the log does not say it.
std::vector<double> megatron_deepspeed(const Evidence& e, bool recompute) {
  std::vector<double> out;
  const auto now = counted_flops(e, to_string(Convention::megatron));
  if (!now || !e.model || e.model->experts || !e.sequence_length) return out;
  const double L = static_cast<double>(e.model->layers), D = static_cast<double>(e.model->width),
               T = e.sequence_length->middle();
  std::vector<double> ranks = {1, 2, 4, 8, 16};
  if (const auto said = number_in(e.record, Setting::tensor_parallel)) ranks = {*said};
  for (const double of_tensors : ranks) {
    const double unit = 128 * of_tensors, V = std::ceil(static_cast<double>(e.model->vocab) / unit) * unit;
    const double factor =
        24 * (recompute ? 4 : 3) * L * D * D * (1 + T / (6 * D) + V / (16 * L * D)) / now->middle();
    if (std::find(out.begin(), out.end(), factor) == out.end()) out.push_back(factor);
  }
  return out;
}

/// Versions of Megatron-LM before 2025 took every layer of a model with experts for sparse, and experts to be
/// as wide as a dense MLP; the earliest left shared ones out. As factors on what later ones count.
std::vector<double> experts_as_before(const Evidence& e) {
  std::vector<double> out;
  const auto now = counted_flops(e, to_string(Convention::megatron));
  if (!now || !e.model || !e.model->experts || !e.sequence_length) return out;
  for (const std::int64_t shared : {e.model->experts->shared_width, std::int64_t{0}}) {
    ModelSpec before = *e.model;
    before.experts->first_dense = 0;
    before.experts->every = 1;
    before.experts->width = before.ffn;
    before.experts->shared_width = shared;
    const auto length = static_cast<std::int64_t>(e.sequence_length->middle());
    const auto count = flops_per_token(Convention::megatron, before, length);
    if (!count.flops) continue;
    const double factor = count.flops->to_double() / now->middle();
    if (std::abs(factor - 1) > 1e-9 && std::find(out.begin(), out.end(), factor) == out.end())
      out.push_back(factor);
  }
  return out;
}

}  // namespace

/// Megatron-LM (training.py, num_floating_point_operations) and llm.c (train_gpt2.cu, estimate_mfu) counted
/// attention over all pairs before they counted the causal half, and their logs name no version: either, as
/// factors on what they count now. llm.c's discussion 481, 124,475,904 parameters at T = 1,024: 49.0 % of an
/// A100 at 177,968 tokens/s is 6 N + 12 L D T.
std::vector<Counting> countings(const Evidence& e) {
  std::vector<Counting> out = {{}};
  const std::string& convention = e.record.format.convention;
  const auto which = convention_from(convention);
  if (which == Convention::megatron || which == Convention::llmc)
    for (const Miscount& miss : miscounts(e, convention))
      if (miss.id == "attention_full")
        out.push_back({miss.factor, "attention is counted over all pairs, as earlier versions do"});
  const std::size_t pairs = out.size();
  if (which == Convention::megatron)
    for (const double factor : experts_as_before(e))
      for (std::size_t i = 0; i < pairs; ++i)
        out.push_back({factor + out[i].factor - 1, "experts are counted as earlier versions do"});
  if (which == Convention::megatron)
    for (const bool again : {false, true})
      for (const double factor : megatron_deepspeed(e, again))
        out.push_back({factor, std::string("FLOPs are counted as Megatron-DeepSpeed does, ") +
                                   (again ? "a recomputed forward pass too" : "without recompute")});
  return out;
}

}  // namespace assay::spec::audit
