// All faults; of them, those of rates and peaks: what the numbers of a whole log show.
#include "tests/support/audit/fault_parts.hpp"

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
      {"setting_said_otherwise",
       "twice the micro-batch in the first of two lines that say it",
       {F::llmc, F::kempnerforge},
       {},
       printing([](SimulatedRun& run, Report& r, std::uint64_t) {
         r.first_micro_of = 2;
         return run.format == F::llmc || run.format == F::kempnerforge;
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
