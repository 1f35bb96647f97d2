// Faults of losses, learning rates and steps: what single lines and their order show.
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/audit/fault_parts.hpp"

namespace assay::tests::fault_parts {

static bool logs_first(const SimulatedRun& run) {
  return run.log_every == 1 || run.first_number() == 0 || run.format == F::torchtitan ||
         run.format == F::kempnerforge;
}

std::vector<Fault> loss_faults() {
  const std::vector<LogFormat> any = {F::assay,        F::llm_tii,   F::llm_tii_json, F::torchtitan,
                                      F::kempnerforge, F::megatron,  F::nanogpt,      F::llmc,
                                      F::llmq,         F::llmq_json, F::hugging_face, F::csv,
                                      F::json_lines},
                               with_vocabulary = {F::assay,        F::llm_tii, F::torchtitan,
                                                  F::kempnerforge, F::llmc,    F::llmq};
  const std::vector<LogFormat> scheduled = {F::assay, F::llm_tii, F::kempnerforge, F::llmc, F::llmq_json};
  return {
      {"loss_not_finite",
       "a loss that is no number",
       any,
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         const auto at = line_with(r, Field::loss, seed);
         if (at) r.steps[*at][Field::loss] = std::numeric_limits<double>::quiet_NaN();
         return at.has_value();
       })},
      {"loss_negative",
       "a negative loss",
       any,
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         const auto at = line_with(r, Field::loss, seed);
         if (at) r.steps[*at][Field::loss] = -0.7;
         return at.has_value();
       })},
      {"loss_collapsed",
       "a loss of nothing",
       any,
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         const auto at = line_with(r, Field::loss, seed);
         if (at)
           for (std::size_t i = *at; i < r.steps.size(); ++i) r.steps[i][Field::loss] = 0.0;
         return at.has_value();
       })},
      {"loss_summed_over_passes",
       "losses summed over micro-batches",
       with_vocabulary,
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         scale(r, Field::loss, real(run.accumulation));
         return logs_first(run) && run.accumulation > 1;
       }),
       passes_as_ranks},
      {"loss_divided_twice",
       "losses divided by the accumulation twice",
       {F::assay, F::llmc},  // that say that their weights are new
       {"average_loss_multiple"},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         scale(r, Field::loss, 1 / real(run.accumulation));
         return logs_first(run) && run.accumulation > 1;
       }),
       passes_as_ranks},
      {"loss_in_bits",
       "losses in bits",
       with_vocabulary,
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         scale(r, Field::loss, 1 / std::numbers::ln2);
         return logs_first(run);
       })},
      {"schedule_without_warmup",
       "no warm-up",
       scheduled,
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         SimulatedRun without = run;
         without.warmup_steps = 0;
         for (ReportedStep& s : r.steps)
           if (s[Field::learning_rate])
             s[Field::learning_rate] =
                 scheduled_rate(without, static_cast<std::int64_t>(*s[Field::step]) - run.first_number());
         return true;
       })},
      {"schedule_per_micro_batch",
       "the schedule advances with every micro-batch",
       {F::assay, F::kempnerforge},
       {"schedule_per_rank"},
       [](SimulatedRun& run, std::uint64_t) -> Faulty {
         if (run.accumulation < 2) return std::nullopt;
         const SimulatedRun truth = run;
         for (std::size_t i = 0; i < run.steps.size(); ++i) {
           const std::size_t at =
               std::min((i + 1) * static_cast<std::size_t>(run.accumulation), run.steps.size()) - 1;
           run.steps[i].learning_rate = truth.steps[at].learning_rate;
         }
         return report(run);
       },
       short_warmups},
      {"rate_times_ranks",
       "learning rates times the ranks",
       scheduled,
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         scale(r, Field::learning_rate, real(run.data_parallel));
         return run.data_parallel > 1;
       })},
      line_fault("line_learning_rate", Field::learning_rate,
                 {F::assay, F::kempnerforge, F::llmc, F::llmq_json}),
  };
}

std::vector<Fault> step_faults() {
  const std::vector<LogFormat> numbered = {
      F::assay, F::llm_tii, F::llm_tii_json, F::torchtitan,   F::kempnerforge, F::megatron,  F::nanogpt,
      F::llmc,  F::llmq,    F::llmq_json,    F::hugging_face, F::csv,          F::json_lines};
  return {
      {"step_missing",
       "three lines missing",
       numbered,
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         if (r.steps.size() < 12) return false;
         const auto at = static_cast<std::ptrdiff_t>(3 + pick(seed, r.steps.size() - 9));
         r.steps.erase(r.steps.begin() + at, r.steps.begin() + at + 3);
         return true;
       })},
      {"step_doubled",
       "a line twice",
       numbered,
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         const auto at = line_with(r, Field::step, seed);
         if (at)
           r.steps.insert(r.steps.begin() + static_cast<std::ptrdiff_t>(*at), ReportedStep(r.steps[*at]));
         return at.has_value();
       })},
      {"steps_out_of_order",
       "two lines exchanged",
       numbered,
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         const auto at = line_with(r, Field::step, seed);
         if (at) std::swap(r.steps[*at], r.steps[*at - 1]);
         return at.has_value();
       })},
      {"rate_jump",
       "one step ten times as fast",
       {F::assay, F::kempnerforge, F::llmc, F::json_lines},
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t seed) {
         const auto at = line_with(r, Field::mfu, seed);
         if (!at) return false;
         *r.steps[*at][Field::seconds] /= 10;
         for (const Field field :
              {Field::tokens_per_second, Field::gpu_tokens_per_second, Field::mfu, Field::flops_rate,
               Field::hardware_flops_rate, Field::sequences_per_second})
           *r.steps[*at][field] *= 10;
         return true;
       })},
      {"tokens_not_resumed",
       "the count starts anew after a restart",
       {F::megatron, F::hugging_face},
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t) {
         const std::size_t n = r.steps.size();
         if (n < 10) return false;
         std::vector<ReportedStep> steps(r.steps.begin(),
                                         r.steps.begin() + static_cast<std::ptrdiff_t>(n * 6 / 10));
         const std::size_t from = n * 4 / 10;
         for (std::size_t i = from; i < n; ++i) {
           steps.push_back(r.steps[i]);
           for (const Field field : {Field::tokens_total, Field::sequences_total})
             *steps.back()[field] = *r.steps[i][field] - *r.steps[from - 1][field];
           // Done again, and not copied: sums are formed in another order.
           if (i < n * 6 / 10) *steps.back()[Field::loss] *= 1.001;
         }
         r.steps = steps;
         return true;
       })},
      line_fault("line_mfu", Field::mfu, {F::assay, F::llm_tii_json, F::llm_tii, F::torchtitan}),
      line_fault("line_tokens_per_second", Field::tokens_per_second, {F::assay, F::llm_tii_json, F::llm_tii}),
      line_fault("line_seconds", Field::seconds, {F::assay, F::llm_tii_json, F::llm_tii}),
      line_fault("line_flops_rate", Field::flops_rate, {F::llm_tii_json, F::llm_tii}),
  };
}

}  // namespace assay::tests::fault_parts
