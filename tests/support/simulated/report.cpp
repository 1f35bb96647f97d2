// What a simulated run's trainer prints of it, before any format: tests/support/simulated/run.hpp.
#include <algorithm>
#include <cmath>

#include "tests/support/simulated/run.hpp"

namespace assay::tests {
namespace {

using spec::audit::Field;
using spec::audit::Setting;

bool logged(const SimulatedRun& run, std::int64_t i) {
  switch (run.format) {
    case LogFormat::nanogpt:
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
    case LogFormat::nanotron:
      return i % run.log_every == 0;
    case LogFormat::torchtitan:
    case LogFormat::kempnerforge:
      return i == 0 || (i + 1) % run.log_every == 0;
    default:
      return (i + 1) % run.log_every == 0;
  }
}

/// How many times the tokens of one rank's micro-batch.
double counted(const SimulatedRun& run, Whose whose) {
  const double dp = static_cast<double>(run.data_parallel);
  return whose == Whose::all ? dp : whose == Whose::rank ? 1 : dp / static_cast<double>(run.gpus);
}

double peak(const SimulatedRun& run) {
  const Accounting& a = run.accounting;
  const double gpus = static_cast<double>(run.gpus), dp = static_cast<double>(run.data_parallel);
  return a.peak * (a.peak_of == Whose::all ? gpus : a.peak_of == Whose::rank ? gpus / dp : 1);
}

/// Rates of one line: `seconds` per step and what the trainer makes of it.
struct Rates {
  double tokens_per_second, flops_rate, mfu;
};
Rates rates(const SimulatedRun& run, double seconds) {
  const Accounting& a = run.accounting;
  const double one = static_cast<double>(run.micro) * static_cast<double>(a.accumulation) *
                     static_cast<double>(run.sequence_length) / seconds;
  const double flops = one * counted(run, a.numerator) * a.flops_per_token;
  return {one * counted(run, a.rate) * a.rate_factor, flops * a.mfu_factor, flops / peak(run) * a.mfu_factor};
}

void report_batch(const SimulatedRun& run, Report& out) {
  const double sequences = static_cast<double>(run.micro) *
                           static_cast<double>(run.accounting.accumulation_stated) *
                           static_cast<double>(run.data_parallel);
  out[Setting::sequence_length] = static_cast<double>(run.sequence_length);
  out[Setting::micro] = static_cast<double>(run.micro);
  out[Setting::accumulation] = static_cast<double>(run.accounting.accumulation_stated);
  out[Setting::sequences] = sequences;
  out[Setting::tokens_per_step] = sequences * static_cast<double>(run.sequence_length);
  out[Setting::gpus] = static_cast<double>(run.gpus);
  out[Setting::data_parallel] = static_cast<double>(run.data_parallel);
  out[Setting::tensor_parallel] = static_cast<double>(run.tensor_parallel);
  out[Setting::pipeline_parallel] = static_cast<double>(run.pipeline_parallel);
}

void report_model(const SimulatedRun& run, Report& out) {
  const spec::ModelSpec& m = run.model;
  out[Setting::parameters] = run.parameters;
  out[Setting::parameters_nonembedding] = run.parameters_nonembedding;
  out[Setting::layers] = static_cast<double>(m.layers);
  out[Setting::width] = static_cast<double>(m.width);
  out[Setting::heads] = static_cast<double>(m.heads);
  out[Setting::kv_heads] = static_cast<double>(m.kv_heads);
  out[Setting::head_dim] = static_cast<double>(m.head_dim);
  out[Setting::ffn] = static_cast<double>(m.ffn);
  out[Setting::vocab] = static_cast<double>(m.vocab);
  out[Setting::ffn_flops_per_layer] = 6 * static_cast<double>(run.sequence_length) *
                                      static_cast<double>(m.width) * static_cast<double>(m.ffn);
  out[Setting::flops_per_token] = run.accounting.flops_per_token;
  out[Setting::peak_flops] = peak(run);
  out[Setting::gpu_memory] = run.gpu_memory;
}

void report_schedule(const SimulatedRun& run, Report& out) {
  out[Setting::learning_rate] = run.highest_rate;
  out[Setting::learning_rate_min] = run.lowest_rate;
  out[Setting::warmup_steps] = static_cast<double>(run.warmup_steps);
  out[Setting::decay_steps] = static_cast<double>(run.decay_steps);
  if (is_wsd(run)) out[Setting::wsd_decay_steps] = static_cast<double>(run.wsd_decay_steps);
  out[Setting::max_steps] = static_cast<double>(run.steps.size());
}

/// Sequences of a step as the trainer's counters have them: those that were performed.
double counted_sequences(const SimulatedRun& run) {
  return static_cast<double>(run.micro) * static_cast<double>(run.accounting.accumulation) *
         static_cast<double>(run.data_parallel);
}

void report_summary(const SimulatedRun& run, Report& out) {
  double seconds = run.seconds_outside, inside = 0;
  for (const SimulatedStep& step : run.steps) inside += step.seconds;
  seconds += inside;
  const double count = static_cast<double>(run.steps.size());
  const double tokens =
      (counted_sequences(run) * count - run.lacking(count)) * static_cast<double>(run.sequence_length);
  out[Setting::total_seconds] = seconds;
  out[Setting::total_tokens] = tokens;
  out[Setting::total_flops] = 6 * run.parameters_nonembedding * tokens;
  out[Setting::average_tokens_per_second] = tokens / seconds;
  out[Setting::final_step] = count - 1 + static_cast<double>(run.first_number());
}

/// Means of the lines that are printed, and the last losses of all.
void report_means(const SimulatedRun& run, Report& out) {
  const auto mean = [&](Field field) {
    double sum = 0, count = 0;
    for (const ReportedStep& step : out.steps)
      if (step[field]) sum += *step[field], ++count;
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  };
  out[Setting::average_seconds] = mean(Field::seconds);
  out[Setting::average_mfu] = mean(Field::mfu);
  const std::size_t last = std::min<std::size_t>(run.steps.size(), 10);
  if (last == 0) return;
  double sum = 0;
  double all = 0;
  for (const SimulatedStep& step : run.steps) all += step.loss;
  out[Setting::average_loss] = all / static_cast<double>(run.steps.size());
  for (std::size_t i = run.steps.size() - last; i < run.steps.size(); ++i) sum += run.steps[i].loss;
  out[Setting::final_loss] = sum / static_cast<double>(last);
  out[Setting::final_loss_steps] = static_cast<double>(last);
  const double level = std::log(static_cast<double>(run.model.vocab));
  out[Setting::gap_closed] = (level - *out[Setting::final_loss]) / (level - run.loss_floor);
}

/// Planned a little above what is measured.
ReportedMemory reported_memory(const SimulatedRun& run) {
  const double planned = std::round(1.004 * run.memory_peak);
  return {run.gpu_memory, planned, planned, std::round(0.6 * planned), planned, run.memory_peak};
}

}  // namespace

Report report(const SimulatedRun& run) {
  Report out;
  report_batch(run, out);
  report_model(run, out);
  report_schedule(run, out);
  report_summary(run, out);
  out[Setting::loss_floor] = run.loss_floor;
  out[Setting::expected_first_loss] = run.expected_first_loss;
  out[Setting::expected_first_loss_deviation] = run.expected_first_loss_deviation;
  out.memory = reported_memory(run);
  const Accounting& a = run.accounting;
  double window = 0, window_steps = 0, window_skips = 0, window_losses = 0, elapsed = 0, running_mfu = -1,
         running_rate = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const SimulatedStep& step = run.steps[i];
    elapsed += step.seconds;
    window += step.seconds;
    ++window_steps;
    window_skips += step.skipped;
    window_losses += step.loss;
    const bool of_trainer =
        run.format == LogFormat::hugging_face || run.format == LogFormat::hugging_face_console;
    const bool windowed =
        run.format == LogFormat::torchtitan || run.format == LogFormat::megatron || of_trainer;
    const Rates now = rates(run, step.seconds);
    // What a program that starts again has smoothed is lost; llm.c still corrects for all steps.
    const bool again = run.resumed_at > 0 && static_cast<std::int64_t>(i) >= run.resumed_at;
    const std::size_t local = again ? i - static_cast<std::size_t>(run.resumed_at) : i;
    if (local == 0) running_mfu = -1, running_rate = 0;
    // llm.c smooths tokens/s from its second step on, and corrects the bias (Adam's way).
    if (i > 0) running_rate = 0.95 * running_rate + 0.05 * now.tokens_per_second;
    if (!logged(run, static_cast<std::int64_t>(i))) continue;
    const double seconds = windowed ? window / window_steps : step.seconds;
    Rates shown = rates(run, seconds);
    // nanoGPT measures MFU on the lines that it prints, from its fifth step on, and smooths it.
    if (run.format == LogFormat::nanogpt && local >= 5)
      shown.mfu = running_mfu = running_mfu < 0 ? now.mfu : 0.9 * running_mfu + 0.1 * now.mfu;
    if (run.format == LogFormat::llmc && i > 0)
      shown.tokens_per_second = running_rate / (1 - std::pow(0.95, static_cast<double>(i)));
    ReportedStep line;
    const double done = static_cast<double>(i + 1);
    line[Field::step] = static_cast<double>(i) + static_cast<double>(run.first_number());
    // Trainer prints the mean loss of the steps since the line before.
    line[Field::loss] = of_trainer ? window_losses / window_steps : step.loss;
    line[Field::gradient_norm] = step.gradient_norm;
    line[Field::learning_rate] = step.learning_rate;
    // Megatron-LM prints the mean loss of the updates that were made, and no norm of one that was not.
    if (run.format == LogFormat::megatron) {
      line[Field::skipped] = window_skips;
      if (window_skips == window_steps) line[Field::loss].reset();
      if (step.skipped) line[Field::gradient_norm].reset();
    }
    line[Field::seconds] = seconds * a.time_factor;
    line[Field::elapsed] = elapsed;
    line[Field::tokens_per_second] = shown.tokens_per_second;
    line[Field::tokens] = counted_sequences(run) * static_cast<double>(run.sequence_length);
    line[Field::sequences_total] = counted_sequences(run) * done - run.lacking(done);
    line[Field::tokens_total] = *line[Field::sequences_total] * static_cast<double>(run.sequence_length);
    line[Field::valid_tokens] = line[Field::tokens];
    line[Field::phases] = step.seconds * a.time_factor;
    line[Field::step_sequences] = out[Setting::sequences];
    line[Field::planned_steps] = out[Setting::max_steps];
    line[Field::sequences_per_second] = counted_sequences(run) / seconds;
    line[Field::memory_share] = run.memory_reserved * a.memory_factor / run.gpu_memory;
    line[Field::mfu] = line[Field::hfu] = shown.mfu;
    line[Field::flops_rate] = line[Field::hardware_flops_rate] = shown.flops_rate;
    line[Field::gpu_tokens_per_second] = shown.tokens_per_second / static_cast<double>(run.gpus);
    line[Field::flops_per_token] = a.flops_per_token;
    line[Field::peak_flops] = peak(run);
    line[Field::memory_allocated] = run.memory_allocated * a.memory_factor;
    line[Field::memory_peak] = run.memory_peak * a.memory_factor;
    line[Field::memory_reserved] = run.memory_reserved * a.memory_factor;
    const bool warming_up = (run.format == LogFormat::llm_tii || run.format == LogFormat::llm_tii_json ||
                             run.format == LogFormat::nanogpt) &&
                            local < 5;
    if (warming_up)
      for (const Field field :
           {Field::mfu, Field::tokens_per_second, Field::flops_rate, Field::flops_per_token,
            Field::peak_flops, Field::memory_allocated, Field::memory_peak, Field::memory_reserved})
        line[field].reset();
    out.steps.push_back(line);
    window = window_steps = window_skips = window_losses = 0;
  }
  report_means(run, out);
  return out;
}

}  // namespace assay::tests
