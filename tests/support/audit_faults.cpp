#include "tests/support/audit_faults.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "spec/flops/conventions.hpp"

namespace assay::tests {
namespace {

using spec::audit::Field;
using spec::audit::Setting;
using F = LogFormat;
using Faulty = std::optional<Report>;

double real(std::int64_t n) { return static_cast<double>(n); }

/// A number of [0, n) that depends on the seed alone.
std::size_t pick(std::uint64_t seed, std::size_t n) {
  return static_cast<std::size_t>((seed * 0x9E3779B97F4A7C15u >> 33) % n);
}

/// KempnerForge has heads of width / heads alone, so it never trained this model.
bool possible(const SimulatedRun& run) {
  return run.format != F::kempnerforge || run.model.name != "qwen3-0.6b";
}

/// Changes the trainer's accounting, then reports.
template <class Change>
auto accounting(Change change) {
  return [change](SimulatedRun& run, std::uint64_t seed) -> Faulty {
    if (!possible(run) || !change(run, seed)) return std::nullopt;
    return report(run);
  };
}

/// Changes what is printed.
template <class Change>
auto printing(Change change) {
  return [change](SimulatedRun& run, std::uint64_t seed) -> Faulty {
    Report out = report(run);
    if (!possible(run) || !change(run, out, seed)) return std::nullopt;
    return out;
  };
}

void scale(Report& report, Field field, double factor) {
  for (ReportedStep& step : report.steps)
    if (step[field]) *step[field] *= factor;
}

/// The index of a line in the middle that has `field`; nothing when there are fewer than eight.
std::optional<std::size_t> line_with(const Report& report, Field field, std::uint64_t seed) {
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < report.steps.size(); ++i)
    if (report.steps[i][field]) lines.push_back(i);
  if (lines.size() < 8) return std::nullopt;
  return lines[3 + pick(seed, lines.size() - 5)];
}

bool several_ranks_and_passes(const SimulatedRun& run) {
  return run.data_parallel > 1 && run.accumulation > 1;
}

/// A share of one rank and a share of one pass are the same number.
const std::vector<Twin> as_many_passes = {
    {"as many passes as ranks: one rank's share of a step is one micro-batch per rank",
     [](const SimulatedRun& run, std::uint64_t) { return run.data_parallel == run.accumulation; }},
    {"as many passes as GPUs: one GPU's share of a step is one micro-batch per GPU",
     [](const SimulatedRun& run, std::uint64_t) {
       return run.gpus == run.accumulation && run.data_parallel != run.accumulation;
     }}};

/// The sum over passes is the sum over ranks.
const std::vector<Twin> passes_as_ranks = {
    {"as many passes as ranks: a sum over passes is one over ranks",
     [](const SimulatedRun& run, std::uint64_t) { return run.data_parallel == run.accumulation; }}};

const std::vector<Twin> two_gpus = {
    {"two GPUs: twice or half of one GPU's peak is the peak of another number of GPUs",
     [](const SimulatedRun& run, std::uint64_t) { return run.gpus == 2; }}};

/// Passes that are performed in place of the stated ones.
std::int64_t performed(const SimulatedRun& run, std::uint64_t seed) {
  return 2 + static_cast<std::int64_t>(pick(seed, static_cast<std::size_t>(run.accumulation - 2)));
}

double attention(const SimulatedRun& run) {
  return 12 * real(run.model.layers) * real(run.model.heads * run.model.head_dim) * real(run.sequence_length);
}
double embedding(const SimulatedRun& run) { return 6 * real(run.model.vocab) * real(run.model.width); }

Fault line_fault(const char* id, Field field, std::vector<LogFormat> formats) {
  return {id,
          "one line's number times 1.3",
          std::move(formats),
          {},
          printing([field](SimulatedRun&, Report& r, std::uint64_t seed) {
            const auto at = line_with(r, field, seed);
            if (!at) return false;
            *r.steps[*at][field] *= 1.3;
            return true;
          })};
}

std::vector<Fault> rate_faults() {
  return {
      {"rate_of_one_rank",
       "tokens/s and MFU made of one rank's tokens",
       {F::assay, F::llm_tii, F::llm_tii_json, F::kempnerforge},
       {"rate_of_one_gpu"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.rate = run.accounting.numerator = Whose::rank;
         return several_ranks_and_passes(run);
       }),
       as_many_passes},
      {"mfu_one_over_all",
       "MFU made of one rank's tokens, over the peak of all",
       {F::assay, F::kempnerforge},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.numerator = Whose::rank;
         return run.data_parallel > 1;
       })},
      {"mfu_all_over_one",
       "MFU made of all tokens, over the peak of one",
       {F::torchtitan, F::assay, F::llmc, F::megatron},
       {"flops_of_all"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.numerator = Whose::all;
         run.accounting.peak_of = Whose::gpu;
         return run.gpus > 1;
       })},
      {"rate_of_all",
       "tokens/s of all GPUs where the trainer prints one GPU's",
       {F::torchtitan},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.rate = Whose::all;
         return run.gpus > 1;
       })},
      {"rate_of_micro_batch",
       "tokens/s of one micro-batch per step",
       {F::assay, F::kempnerforge, F::llm_tii},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.rate_factor = 1 / real(run.accumulation);
         return several_ranks_and_passes(run);
       }),
       as_many_passes},
      {"accumulation_performed",
       "fewer passes performed than stated",
       {F::assay, F::kempnerforge, F::llmc, F::megatron},
       {},
       accounting([](SimulatedRun& run, std::uint64_t seed) {
         if (run.accumulation < 4) return false;
         run.accounting.accumulation = performed(run, seed);
         return run.accounting.accumulation != run.accumulation;
       }),
       {{"the stated passes divided by the ranks: an accumulation divided once more",
         [](const SimulatedRun& run, std::uint64_t seed) {
           return performed(run, seed) * run.data_parallel == run.accumulation;
         }},
        {"the stated passes divided by the GPUs: one GPU's rate",
         [](const SimulatedRun& run, std::uint64_t seed) {
           const std::int64_t k = performed(run, seed);
           return k * run.gpus == run.accumulation && k * run.data_parallel != run.accumulation;
         }}}},
      {"rate_unit",
       "tokens/s in thousands, without the k",
       {F::assay, F::kempnerforge, F::llm_tii, F::llmc},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.rate_factor = 1e-3;
         return true;
       }),
       {{"1,000 ranks: one rank's rate",
         [](const SimulatedRun& run, std::uint64_t) { return run.data_parallel == 1000; }}}},
      {"rate_unit",
       "k of tokens/s is 1,024",
       {F::assay, F::llm_tii, F::llm_tii_json},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.rate_factor = 1 / 1.024;
         return true;
       })},
      {"rate_counts_padding",
       "tokens/s counts padding",
       {F::assay, F::kempnerforge, F::llm_tii},
       {},
       accounting([](SimulatedRun& run, std::uint64_t seed) {
         run.accounting.rate_factor = 1.06 + 0.005 * static_cast<double>(pick(seed, 60));
         return true;
       })},
      {"time_unit",
       "step time in milliseconds, printed as seconds",
       {F::assay, F::llm_tii, F::llm_tii_json, F::kempnerforge, F::llmc, F::csv},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.time_factor = 1e3;
         return true;
       })},
      {"mfu_as_share",
       "MFU as a share of 1 where percent are printed",
       {F::assay, F::llm_tii_json, F::torchtitan},
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t) {
         scale(r, Field::mfu, 0.01);
         return true;
       })},
      {"mfu_in_percent",
       "MFU in percent where a share is printed",
       {F::assay, F::llm_tii_json, F::llm_tii, F::torchtitan, F::csv},
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t) {
         scale(r, Field::mfu, 100);
         return true;
       })},
      {"flops_rate_unit",
       "achieved FLOP/s 10^3 too small",
       {F::llm_tii_json, F::torchtitan},
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t) {
         scale(r, Field::flops_rate, 1e-3);
         return true;
       })},
  };
}

std::vector<Fault> peak_faults() {
  const std::vector<LogFormat> with_peak = {F::assay,      F::llm_tii,      F::llm_tii_json,
                                            F::torchtitan, F::kempnerforge, F::llmc};
  return {
      {"peak_sparse",
       "MFU against the sparse peak",
       with_peak,
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.peak = run.peak_sparse;
         return true;
       }),
       two_gpus},
      {"peak_other_gpu",
       "MFU against the peak of another GPU",
       with_peak,
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.peak = run.peak_dense == 312e12 ? 989e12 : 312e12;
         return true;
       })},
      {"peak_other_dtype",
       "MFU against the peak of tf32",
       with_peak,
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.peak = run.peak_dense == 989e12   ? 494.5e12
                               : run.peak_dense == 312e12 ? 156e12
                                                          : 1100e12;
         return true;
       }),
       two_gpus},
      {"gpus_other",
       "twice the number of GPUs printed",
       {F::llm_tii},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         *r[Setting::gpus] *= 2;
         return run.gpus > 1;
       })},
      {"sequence_length_other",
       "twice the sequence length printed",
       {F::llm_tii, F::assay},
       {},
       printing([](SimulatedRun&, Report& r, std::uint64_t) {
         *r[Setting::sequence_length] *= 2;
         return true;
       })},
      {"device_memory_unit",
       "memory of the GPU in GB, printed as GiB",
       {F::assay, F::llm_tii, F::torchtitan},
       {"memory_gib_as_gb"},
       printing([](SimulatedRun&, Report& r, std::uint64_t) {
         *r[Setting::gpu_memory] *= 1073741824.0 / 1e9;
         return true;
       })},
      {"memory_of_all_gpus",
       "memory in use summed over all GPUs",
       {F::assay, F::llm_tii, F::torchtitan, F::kempnerforge},
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.memory_factor = real(run.gpus);
         return run.gpus > 1 && run.memory_peak * real(run.gpus) > 1.12 * run.gpu_memory;
       })},
  };
}

std::vector<Fault> flops_faults() {
  const std::vector<LogFormat> printed = {F::assay, F::llm_tii, F::llm_tii_json},
                               known = {F::assay, F::llm_tii, F::torchtitan, F::kempnerforge};
  return {
      {"attention_not_counted",
       "FLOPs without attention",
       known,
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         const bool causal = run.format == F::assay;
         run.accounting.flops_per_token -= causal ? attention(run) / 2 : attention(run);
         return run.sequence_length >= 1024;
       })},
      {"attention_full",
       "all pairs of attention counted, not the causal half",
       {F::assay, F::megatron},
       {"convention_other"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token += attention(run) / 2;
         return run.sequence_length >= 2048;
       })},
      {"attention_causal",
       "the causal half of attention counted, not all pairs",
       {F::torchtitan, F::llm_tii},
       {"convention_other"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token -= attention(run) / 2;
         return run.sequence_length >= 2048;
       })},
      {"embedding_counted",
       "FLOPs with the input embedding",
       {F::torchtitan, F::assay},
       {"convention_other"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token += embedding(run);
         return true;
       })},
      {"flops_forward_only",
       "FLOPs of the forward pass alone",
       known,
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token /= 3;
         return true;
       })},
      {"flops_with_recompute",
       "FLOPs with a recomputed forward pass",
       known,
       {},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token *= 4.0 / 3;
         return true;
       })},
      {"embedding_not_counted",
       "parameters without the embedding",
       {F::assay, F::torchtitan},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         *r[Setting::parameters] -= embedding(run) / 6;
         return true;
       })},
      {"total_of_one_rank",
       "tokens or sequences since the start of one rank",
       {F::hugging_face, F::megatron},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         scale(r, Field::tokens_total, 1 / real(run.data_parallel));
         scale(r, Field::sequences_total, 1 / real(run.data_parallel));
         return several_ranks_and_passes(run);
       }),
       as_many_passes},
      {"total_of_micro_batches",
       "tokens or sequences since the start of one micro-batch per step",
       {F::hugging_face, F::megatron},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         scale(r, Field::tokens_total, 1 / real(run.accumulation));
         scale(r, Field::sequences_total, 1 / real(run.accumulation));
         return several_ranks_and_passes(run);
       }),
       as_many_passes},
      {"total_of_one_rank",
       "total tokens of one rank in the summary",
       {F::assay, F::kempnerforge},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         *r[Setting::total_tokens] /= real(run.data_parallel);
         *r[Setting::average_tokens_per_second] /= real(run.data_parallel);
         return several_ranks_and_passes(run);
       }),
       as_many_passes},
      {"total_flops_of_one_rank",
       "total FLOPs of one rank, or of one shard",
       {F::hugging_face},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         *r[Setting::total_flops] /= real(run.data_parallel);
         return run.data_parallel > 1;
       })},
  };
}

bool logs_first(const SimulatedRun& run) {
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
       {},
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
         for (ReportedStep& s : r.steps) {
           const double u = *s[Field::step] - real(run.first_number()) + 1,
                        x = std::min(1.0, u / real(run.decay_steps));
           if (s[Field::learning_rate])
             s[Field::learning_rate] = run.lowest_rate + (run.highest_rate - run.lowest_rate) *
                                                             (1 + std::cos(std::numbers::pi * x)) / 2;
         }
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
       passes_as_ranks},
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
         for (const Field field : {Field::tokens_per_second, Field::mfu, Field::flops_rate})
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

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> out;
    for (const auto& part : {rate_faults(), peak_faults(), flops_faults(), loss_faults(), step_faults()})
      out.insert(out.end(), part.begin(), part.end());
    return out;
  }();
  return all;
}

}  // namespace assay::tests
