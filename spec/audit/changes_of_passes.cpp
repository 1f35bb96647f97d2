// Numbers of one micro-batch, or of one rank, that stand beside those of a step.
#include <string>

#include "spec/audit/change_builder.hpp"

namespace assay::spec::audit {

using R = Relation;

void add_passes(ChangeBuilder& b, const Evidence& e, const Interpretation& reading) {
  const double ranks = e.ranks.value_or(1), gpus = e.gpus.value_or(1);
  if (e.accumulation && e.accumulation->low == e.accumulation->high && e.accumulation->low > 1) {
    const double a = e.accumulation->low / (reading.accumulation_divided ? ranks : 1);
    const bool throughout = b.has(R::mfu) || b.has(R::flops_rate);
    const auto rate = [&](const char* id, const char* text, double x, double cost) {
      b.add(id, std::string(text) + (throughout ? ", and the MFU is made of it" : ""), cost,
            {{R::rate_time, x}, {R::rate_wall_clock, 1 / x}})
          .rate = 1 / x;
      b.add(id, text, cost,
            {{R::rate_time, x}, {R::rate_wall_clock, 1 / x}, {R::flops_rate, 1 / x}, {R::mfu, 1 / x}})
          .rate = 1 / x;
    };
    rate("rate_of_micro_batch", "tokens/s is the tokens of one micro-batch over the time of a step", 1 / a,
         3);
    rate("rate_over_micro_batch_time", "tokens/s is the tokens of a step over the time of one micro-batch", a,
         4.4);
    b.add("time_of_micro_batch", "the step time is that of one micro-batch", 3.1,
          {{R::rate_time, 1 / a},
           {R::wall_clock, 1 / a},
           {R::flops_rate_of_batch, 1 / a},
           {R::mfu_of_batch, 1 / a}})
        .time = a;
    for (const auto& [id, relation] : {std::pair("total_of_micro_batches", R::tokens_total),
                                       std::pair("total_of_micro_batches", R::sequences_total),
                                       std::pair("total_of_micro_batches", R::summary_tokens),
                                       std::pair("tokens_of_micro_batch", R::step_tokens)})
      b.add(id, "one micro-batch per step is counted", 2.8, {{relation, 1 / a}});
    // The count may be what was done, and the rate made of what is configured.
    const std::string of_all = std::to_string(static_cast<int>(a));
    for (const R relation : {R::tokens_total, R::sequences_total})
      if (b.has(R::rate_time))
        b.add("accumulation_not_performed",
              "1 pass of " + of_all +
                  " was performed, as the count since the start grows; tokens/s is made of all " + of_all,
              3, {{relation, 1 / a}})
            .rate = 1 / a;
  }
  const auto counts = [&](double w, const char* what) {
    if (w == 1) return;
    for (const auto& [id, relation] :
         {std::pair("total_of_one_rank", R::tokens_total), std::pair("total_of_one_rank", R::sequences_total),
          std::pair("total_of_one_rank", R::summary_tokens), std::pair("tokens_of_one_rank", R::step_tokens)})
      b.add(w < 1 ? id : "total_per_model_rank", what, 2.5, {{relation, w}});
  };
  counts(1 / ranks, "only one rank's tokens are counted");
  counts(gpus / ranks, "tokens are counted on every rank that shares them (tensor, pipeline)");
}

}  // namespace assay::spec::audit
