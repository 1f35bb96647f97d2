// Faults of FLOPs, and of totals since the start: what is counted in them, and of whom.
#include "tests/support/audit/fault_parts.hpp"

namespace assay::tests::fault_parts {

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

}  // namespace assay::tests::fault_parts
