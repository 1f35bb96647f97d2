// Faults of what stands beside the lines' own numbers: summaries, plans, second numbers of the same thing.
// Each is put into the formats alone that print it.
#include <algorithm>
#include <cmath>

#include "tests/support/audit/fault_parts.hpp"

namespace assay::tests::fault_parts {
namespace {

/// A fault of `formats` and of no other.
template <class Change>
Fault of_formats(std::string id, std::string text, std::vector<LogFormat> formats, Change change,
                 std::set<std::string> also = {}) {
  const auto inject = [formats, change](SimulatedRun& run, std::uint64_t seed) -> Faulty {
    if (!possible(run) || std::count(formats.begin(), formats.end(), run.format) == 0) return std::nullopt;
    Report out;
    if constexpr (std::is_invocable_v<Change, SimulatedRun&, std::uint64_t>) {
      if (!change(run, seed)) return std::nullopt;
      return report(run);
    } else {
      out = report(run);
      if (!change(run, out, seed)) return std::nullopt;
      return out;
    }
  };
  return {std::move(id), std::move(text), formats, std::move(also), inject};
}

/// One setting, times `factor`.
Fault setting_times(const char* id, const char* text, Setting setting, double factor,
                    std::vector<LogFormat> formats, std::set<std::string> also = {}) {
  return of_formats(
      id, text, std::move(formats),
      [setting, factor](SimulatedRun&, Report& r, std::uint64_t) {
        if (!r[setting]) return false;
        *r[setting] *= factor;
        return true;
      },
      std::move(also));
}

/// One number of one line, times `factor`.
Fault one_line_times(const char* id, const char* text, Field field, double factor,
                     std::vector<LogFormat> formats) {
  return of_formats(id, text, std::move(formats),
                    [field, factor](SimulatedRun&, Report& r, std::uint64_t seed) {
                      const auto at = line_with(r, field, seed);
                      if (at) *r.steps[*at][field] *= factor;
                      return at.has_value();
                    });
}

}  // namespace

std::vector<Fault> record_faults() {
  const std::vector<LogFormat> own = {F::assay};
  const auto memory = [&](const char* id, const char* text, auto change) {
    return of_formats(id, text, own, [change](SimulatedRun&, Report& r, std::uint64_t) {
      change(r.memory);
      return true;
    });
  };
  return {
      memory("memory_plan_other", "planned memory without a part of its tensors",
             [](ReportedMemory& m) { m.planned = m.planned_at_start = std::round(0.9 * m.planned); }),
      memory("memory_plan_other", "planned memory of another step than at the start",
             [](ReportedMemory& m) { m.planned_at_start = std::round(1.1 * m.planned); }),
      memory("memory_measured_other", "measured memory of half of the tensors",
             [](ReportedMemory& m) { m.measured = std::round(0.5 * m.measured); }),
      memory("memory_beyond_device", "planned memory against a smaller GPU's",
             [](ReportedMemory& m) { m.capacity = std::round(0.8 * m.planned); }),
      one_line_times("valid_tokens_other", "tokens whose loss counts, counted twice", Field::valid_tokens, 2,
                     own),
      one_line_times("line_seconds", "one part of a step counted twice", Field::phases, 1.1, own),
      setting_times("gap_of_other_loss", "half of the share of the gap that the final loss closes",
                    Setting::gap_closed, 0.5, own),
      setting_times("final_loss_other", "final loss a tenth too large", Setting::final_loss, 1.1, own),
      of_formats("epochs_beyond", "more passes over the data than planned", {F::hugging_face},
                 [](SimulatedRun& run, Report& r, std::uint64_t) {
                   r.epochs = 1.5;
                   return !run.by_steps;  // which plans no passes
                 }),
      of_formats("tensors_miscounted", "a tenth of the decayed parameters left out", {F::nanogpt},
                 [](SimulatedRun&, Report& r, std::uint64_t) {
                   r.decayed_parameters_of = 0.9;
                   return true;
                 }),
      of_formats("vocabulary_other", "vocabulary rounded up", own,
                 [](SimulatedRun& run, Report& r, std::uint64_t) {
                   double& vocab = *r[Setting::vocab];
                   vocab = 512 * (std::floor(vocab / 512) + 1);
                   r[Setting::gap_closed] =
                       (std::log(vocab) - *r[Setting::final_loss]) / (std::log(vocab) - run.loss_floor);
                   return true;
                 }),
      setting_times("average_of_other_steps", "average tokens/s over half of the time",
                    Setting::average_tokens_per_second, 2, own),
      of_formats("hfu_below_mfu", "HFU of half of what was executed", {F::assay, F::nanotron},
                 [](SimulatedRun&, Report& r, std::uint64_t) {
                   scale(r, Field::hfu, 0.5);
                   scale(r, Field::hardware_flops_rate, 0.5);
                   return true;
                 }),
  };
}

std::vector<Fault> summary_faults() {
  const std::vector<LogFormat> trainer_state = {F::hugging_face},
                               with_norm = {F::torchtitan, F::kempnerforge, F::megatron,     F::llmc,
                                            F::llmq,       F::nanotron,     F::build_nanogpt};
  return {
      setting_times("average_of_other_steps", "mean step time of other steps", Setting::average_seconds, 1.5,
                    {F::llm_tii_json}),
      setting_times("average_of_other_steps", "mean MFU of other steps", Setting::average_mfu, 0.7,
                    {F::llm_tii_json}),
      setting_times("ffn_gate_not_counted", "FLOPs of a layer's MLP without its gate",
                    Setting::ffn_flops_per_layer, 2.0 / 3, {F::llm_tii_json}),
      of_formats("expected_rate_at_peak", "expected tokens/s at the peak, not at half of it", {F::llm_tii},
                 [](SimulatedRun& run, Report& r, std::uint64_t) {
                   r[Setting::expected_tokens_per_second_half_mfu] =
                       *r[Setting::peak_flops] / *r[Setting::flops_per_token];
                   // Of two GPUs, twice one's share of the peak is that of both.
                   return run.gpus != 2;
                 }),
      of_formats("average_of_other_time", "steps/s over half of the time", trainer_state,
                 [](SimulatedRun&, Report& r, std::uint64_t) {
                   r[Setting::average_steps_per_second] =
                       2 * *r[Setting::max_steps] / *r[Setting::total_seconds];
                   return true;
                 }),
      of_formats("average_of_other_time", "sequences/s of one rank", trainer_state,
                 [](SimulatedRun& run, Report& r, std::uint64_t) {
                   r[Setting::average_sequences_per_second] =
                       *r[Setting::total_tokens] / real(run.sequence_length) / *r[Setting::total_seconds] /
                       real(run.data_parallel);
                   return run.data_parallel > 1;
                 }),
      setting_times("average_loss_multiple", "mean loss of a summary, summed over eight ranks",
                    Setting::average_loss, 8, {F::hugging_face, F::hugging_face_console},
                    {"average_loss_too_large"}),
      setting_times("speed_impossible", "total time, and rates over it, of a thousandth of the run",
                    Setting::total_seconds, 1e-3, trainer_state),
      of_formats("memory_share_other", "share of another GPU's memory", {F::torchtitan},
                 [](SimulatedRun&, Report& r, std::uint64_t) {
                   scale(r, Field::memory_share, 0.8);
                   return true;
                 }),
      of_formats("batch_of_lines", "twice the batch on the lines", {F::megatron},
                 [](SimulatedRun&, Report& r, std::uint64_t) {
                   scale(r, Field::step_sequences, 2);
                   return true;
                 }),
      of_formats("planned_steps_other", "other planned steps on the lines than in the header",
                 {F::megatron, F::nanotron},
                 [](SimulatedRun& run, Report& r, std::uint64_t) {
                   scale(r, Field::planned_steps, 2);
                   // A header that plans by samples states no steps.
                   return run.schedule_by != SimulatedRun::ScheduleBy::samples;
                 }),
      of_formats("line_sequences_per_second", "one line's number times 1.3", {F::megatron},
                 [](SimulatedRun& run, Report& r, std::uint64_t seed) {
                   const auto at = line_with(r, Field::sequences_per_second, seed);
                   if (at) *r.steps[*at][Field::sequences_per_second] *= 1.3;
                   return at.has_value() && run.prints_sequences_rate;
                 }),
      of_formats("line_gpu_tokens_per_second", "one line's number times 1.3", {F::nanotron},
                 [](SimulatedRun&, Report& r, std::uint64_t seed) {
                   const auto at = line_with(r, Field::gpu_tokens_per_second, seed);
                   if (at) *r.steps[*at][Field::gpu_tokens_per_second] *= 1.3;
                   return at.has_value();
                 }),
      of_formats("line_tokens_per_second", "one line's number times 1.3, without a header", {F::torchtitan},
                 [](SimulatedRun& run, Report& r, std::uint64_t seed) {
                   run.header_lost = true;
                   const auto at = line_with(r, Field::tokens_per_second, seed);
                   if (at) *r.steps[*at][Field::tokens_per_second] *= 1.3;
                   return at.has_value();
                 }),
      one_line_times("value_impossible", "a gradient norm below 0", Field::gradient_norm, -1.5, with_norm),
  };
}

}  // namespace assay::tests::fault_parts
