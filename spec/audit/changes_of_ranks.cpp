// Another number of GPUs, or of ranks where no GPU is named.
#include <cmath>
#include <vector>

#include "spec/audit/solving.hpp"

namespace assay::spec::audit::solving {

using R = Relation;

namespace {

/// Data-parallel ranks times the axes of model parallelism, as stated; 0 where they are not stated.
double ranks_product(const Evidence& e) {
  if (!usable(e.record[Setting::data_parallel])) return 0;
  double out = e.record[Setting::data_parallel]->value;
  for (const Setting axis : {Setting::tensor_parallel, Setting::pipeline_parallel, Setting::context_parallel})
    if (usable(e.record[axis])) out *= e.record[axis]->value;
  return out;
}

}  // namespace

void add_gpus(ChangeBuilder& b, const Left& left) {
  const Evidence& e = left.e;
  const R relation = left.relation;
  const bool axes = relation == R::ranks, own_sequences = e.record[Setting::sequences].has_value();
  if (!(relation == R::sequences || axes || relation == R::peak || relation == R::gpu_rate ||
        (relation == R::tokens_per_step && !own_sequences) ||
        (e.tokens_basis != "as printed" && (relation == R::rate_time || relation == R::step_tokens))))
    return;
  // One GPU's rate is too large by as much as the GPUs are too many.
  Left of_gpus = left;
  if (relation == R::gpu_rate) of_gpus.residual = exact_interval(1) / left.residual;
  // The printed number over the product of the axes is by how much it is too large: the axes are what ran.
  const bool named_ranks = axes && e.ranks_printing > e.gpus.value_or(1);
  const double gpus = e.gpus.value_or(1), g = named_ranks ? e.ranks_printing
                                              : axes      ? ranks_product(e)
                                                          : whole(of_gpus, gpus);
  if (!(g > 0 && e.gpus && g != gpus && g / gpus <= 64 && gpus / g <= 64)) return;
  const double x = g / gpus;
  // A configured accumulation that is divided by the ranks makes one batch, however many they are.
  const bool by_product =
      e.tokens_basis == "micro x accumulation x ranks x T" && !axes && !left.reading.accumulation_divided;
  // llm_TII prints one number under both names; torchtitan the axes alone, which it checks against the ranks
  // of its launcher: the batch beside them is wrong sooner.
  const bool of_mesh = e.trainer.mesh_of_all_ranks && !e.record.stated_for(Setting::gpus);
  const bool one_count = of_mesh || (e.trainer.one_count_of_ranks && e.ranks == e.gpus);
  // What is read as one GPU's was taken times their printed number, and a peak that is not printed too.
  const auto if_so = [&](bool so) { return so ? x : 1; };
  const Interpretation& reading = left.reading;
  const double rate = if_so(reading.rate == Whose::gpu), flops = if_so(reading.flops_rate == Whose::gpu),
               peak = if_so(reading.peak_of_one || !e.printed_peak()), batch = if_so(by_product);
  // Ranks of the CPU are no GPUs, nor is said what others compute on where no GPU is named.
  const bool named = e.record.device.empty() && !e.record.gpu.empty();
  Change& change = b.add("gpus_other", counted(g, named ? "GPU" : "rank") + " ran, not " + written(gpus),
                         relation == R::step_tokens ? 3.7
                         : of_mesh && !named_ranks  ? 4
                                                    : 3.4,
                         {{R::sequences, axes && !named_ranks ? 1 : x},
                          {R::ranks, axes        ? 1 / x
                                     : one_count ? 1
                                                 : x},
                          {R::peak, reading.peak_of_one ? 1 : x},
                          {R::tokens_per_step, axes || own_sequences ? 1 : x},
                          {R::rate_time, (b.lines_count_tokens() ? 1 : batch) / rate},
                          {R::gpu_rate, 1 / x},
                          {R::rate_wall_clock, rate / batch},
                          {R::flops_rate, rate / flops},
                          {R::flops_rate_of_batch, batch / flops},
                          {R::mfu, rate / peak},
                          {R::mfu_of_flops_rate, flops / peak},
                          {R::mfu_of_batch, batch / peak},
                          {R::step_tokens, batch},
                          {R::tokens_total, batch},
                          {R::sequences_total, batch},
                          {R::summary_tokens, batch}});
  change.rate = rate;
  change.gpus = x;
  change.batch = by_product ? x : 1;
  change.of_printer = false;
}

/// A header's data-parallel ranks that are not those of its GPUs, and what is made of them.
void add_ranks(ChangeBuilder& b, const Left& left) {
  const Evidence& e = left.e;
  const double stated = ranks_product(e);
  if (left.relation != R::ranks || !(stated > 0) || !e.gpus || left.reading.rate == Whose::rank ||
      left.reading.flops_rate == Whose::rank || e.ranks_printing > *e.gpus)
    return;
  const double said = e.record[Setting::data_parallel]->value, x = *e.gpus / stated, ran = said * x;
  if (!held(left.residual, x) || ran < 1 || ran != std::floor(ran)) return;
  const bool own_sequences = e.record[Setting::sequences].has_value(),
             by_product =
                 e.tokens_basis == "micro x accumulation x ranks x T" && !left.reading.accumulation_divided;
  std::vector<ChangeBuilder::Effect> effects =
      by_product ? of_batch(b, x, x) : std::vector<ChangeBuilder::Effect>();
  effects.push_back({R::ranks, x});
  effects.push_back({R::sequences, x});
  effects.push_back({R::tokens_per_step, own_sequences ? 1 : x});
  Change& change = b.add("ranks_other",
                         written(ran) + " ranks read data of their own, as the GPUs make, not the " +
                             written(said) + " that are stated",
                         3.5, effects);
  change.batch = by_product ? x : 1;
  change.of_printer = false;
}

}  // namespace assay::spec::audit::solving
