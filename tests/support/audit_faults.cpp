// Faults of rates, peaks and FLOPs: what the numbers of a whole log show.
#include <iterator>

#include "spec/flops/conventions.hpp"
#include "tests/support/audit_fault_parts.hpp"

namespace assay::tests {
namespace fault_parts {
namespace {

std::vector<Fault> rate_faults() {
  return {
      {"rate_of_one_rank",
       "tokens/s and MFU made of one rank's tokens",
       {F::assay, F::llm_tii, F::llm_tii_json, F::kempnerforge},
       {"rate_of_one_gpu", "flops_of_one_rank"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.rate = run.accounting.numerator = Whose::rank;
         return several_ranks_and_passes(run);
       }),
       as_many_passes},
      {"mfu_one_over_all",
       "MFU made of one rank's tokens, over the peak of all",
       {F::assay, F::kempnerforge},
       {"flops_of_one_rank"},
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
         run.accounting.flops_per_token -= attention_counted(run);
         return run.sequence_length >= 1024;
       })},
      {"attention_full",
       "all pairs of attention counted, not the causal half",
       {F::assay},
       {"convention_other"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token += attention(run) / 2;
         return counts_causal_half(run.format) && run.sequence_length >= 2048;
       })},
      {"attention_causal",
       "the causal half of attention counted, not all pairs",
       {F::torchtitan, F::llm_tii},
       {"convention_other"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token -= attention(run) / 2;
         return !counts_causal_half(run.format) && run.sequence_length >= 2048;
       })},
      {"embedding_counted",
       "FLOPs with the input embedding",
       {F::torchtitan, F::assay},
       {"convention_other"},
       accounting([](SimulatedRun& run, std::uint64_t) {
         run.accounting.flops_per_token += embedding(run);
         return !counts_embedding(run.format);
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

}  // namespace
}  // namespace fault_parts

const std::vector<Fault>& faults() {
  using namespace fault_parts;  // NOLINT: of this function alone
  static const std::vector<Fault> all = [] {
    std::vector<Fault> out;
    for (const auto& part : {rate_faults(), peak_faults(), flops_faults(), loss_faults(), step_faults(),
                             record_faults(), summary_faults()})
      out.insert(out.end(), part.begin(), part.end());
    return out;
  }();
  return all;
}

}  // namespace assay::tests
