// labels: property
// Logs of simulated runs, read back to what was printed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::round_trip_test {
namespace {

using tests::LogFormat;

ReadOptions options_for(const tests::SimulatedRun& run) {
  ReadOptions options;
  options.map = tests::read_arguments(run).map;
  options.set = tests::read_arguments(run).set;
  return options;
}

RunRecord read_back(const std::string& log, const ReadOptions& options) {
  std::istringstream in(log);
  return read_log(in, "drawn", options);
}

/// What each format prints of a step.
std::set<Field> printed_fields(LogFormat format) {
  using enum Field;
  switch (format) {
    case LogFormat::assay:
      return {step, loss, gradient_norm, learning_rate, seconds, tokens, tokens_per_second, mfu, memory_peak};
    case LogFormat::llm_tii:
      return {step,        loss,           seconds,           learning_rate,   mfu,
              flops_rate,  peak_flops,     tokens_per_second, flops_per_token, memory_allocated,
              memory_peak, memory_reserved};
    case LogFormat::llm_tii_json:
      return {step,
              loss,
              seconds,
              mfu,
              flops_rate,
              peak_flops,
              tokens_per_second,
              flops_per_token,
              memory_allocated,
              memory_peak,
              memory_reserved};
    case LogFormat::torchtitan:
      return {step, loss, gradient_norm, memory_reserved, tokens_per_second, flops_rate, mfu};
    case LogFormat::kempnerforge:
      return {step, loss, learning_rate, gradient_norm, tokens_per_second, mfu, memory_peak, seconds};
    case LogFormat::megatron:
      return {step, sequences_total, seconds, flops_rate, learning_rate, loss, gradient_norm};
    case LogFormat::nanogpt:
      return {step, loss, seconds, mfu};
    case LogFormat::llmc:
      return {step, loss, gradient_norm, learning_rate, seconds, mfu, tokens_per_second};
    case LogFormat::llmq:
      return {step, seconds, gradient_norm, loss, tokens_per_second, mfu};
    case LogFormat::llmq_json:
      return {step, tokens, seconds, gradient_norm, loss, learning_rate};
    case LogFormat::hugging_face:
      return {step, loss, gradient_norm, learning_rate, tokens_total};
    case LogFormat::hugging_face_console:
      return {loss, gradient_norm, learning_rate};
    default:
      return {step, loss, learning_rate, seconds, tokens_per_second, mfu, memory_peak};
  }
}

std::set<Setting> printed_settings(LogFormat format) {
  using enum Setting;
  switch (format) {
    case LogFormat::assay:
      return {sequence_length,
              micro,
              accumulation,
              sequences,
              tokens_per_step,
              gpus,
              data_parallel,
              parameters,
              vocab,
              flops_per_token,
              peak_flops,
              gpu_memory,
              learning_rate,
              learning_rate_min,
              warmup_steps,
              max_steps,
              total_seconds,
              total_tokens,
              average_tokens_per_second,
              loss_floor,
              expected_first_loss,
              expected_first_loss_deviation};
    case LogFormat::llm_tii:
      return {sequence_length, micro,       accumulation, sequences,
              tokens_per_step, gpus,        parameters,   parameters_nonembedding,
              layers,          width,       heads,        vocab,
              flops_per_token, peak_flops,  gpu_memory,   learning_rate,
              warmup_steps,    decay_steps, max_steps};
    case LogFormat::llm_tii_json:
      return {sequence_length, micro,    gpus,       parameters,    parameters_nonembedding, layers,
              width,           heads,    gpu_memory, learning_rate, learning_rate_min,       warmup_steps,
              decay_steps,     max_steps};
    case LogFormat::torchtitan:
      return {sequence_length,   micro,      accumulation, sequences, gpus,  data_parallel, tensor_parallel,
              pipeline_parallel, parameters, layers,       width,     heads, kv_heads,      vocab,
              peak_flops,        gpu_memory, warmup_steps, max_steps};
    case LogFormat::kempnerforge:
      return {sequence_length,   micro,        accumulation, gpus,        data_parallel,
              tensor_parallel,   parameters,   layers,       width,       heads,
              kv_heads,          ffn,          vocab,        gpu_memory,  learning_rate,
              learning_rate_min, warmup_steps, max_steps,    total_tokens};
    case LogFormat::megatron:
      return {sequence_length,
              micro,
              accumulation,
              sequences,
              gpus,
              data_parallel,
              tensor_parallel,
              pipeline_parallel,
              layers,
              width,
              heads,
              kv_heads,
              head_dim,
              ffn,
              vocab,
              learning_rate,
              learning_rate_min,
              warmup_steps,
              decay_steps,
              max_steps};
    case LogFormat::nanogpt:
      return {sequence_length, micro,         tokens_per_step,   parameters,   layers,      width,
              heads,           learning_rate, learning_rate_min, warmup_steps, decay_steps, max_steps};
    case LogFormat::llmc:
      return {sequence_length,
              micro,
              accumulation,
              tokens_per_step,
              gpus,
              parameters,
              layers,
              width,
              heads,
              vocab,
              peak_flops,
              learning_rate,
              learning_rate_min,
              warmup_steps,
              max_steps};
    case LogFormat::llmq:
    case LogFormat::llmq_json:
      return {sequence_length,   micro,        accumulation, gpus, gpu_memory, learning_rate,
              learning_rate_min, warmup_steps, max_steps};
    case LogFormat::hugging_face:
      return {sequence_length, micro, accumulation, gpus, max_steps, total_seconds, total_flops};
    case LogFormat::hugging_face_console:
      return {sequence_length, micro, accumulation, gpus, total_seconds};
    default:
      return {sequence_length, micro, accumulation, gpus};
  }
}

/// The interval holds the true number; arithmetic of printing and reading costs a few last bits.
bool holds(const Printed& printed, double truth) {
  if (!std::isfinite(truth))
    return printed.value == truth || (std::isnan(printed.value) && std::isnan(truth));
  const double slack = 1e-12 * std::abs(truth);
  return printed.low - slack <= truth && truth <= printed.high + slack;
}

void check_numbers(const tests::SimulatedRun& run, const RunRecord& record) {
  const tests::Report report = tests::report(run);
  const auto fields = printed_fields(run.format);
  RC_ASSERT(record.unread_lines == 0);
  RC_ASSERT(record.steps.size() == report.steps.size());
  RC_ASSERT(record.steps_seen == static_cast<std::int64_t>(report.steps.size()));
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    for (std::size_t f = 0; f < field_count; ++f) {
      const auto field = static_cast<Field>(f);
      if (!fields.contains(field) || !report.steps[i][field]) continue;
      const auto& printed = record.steps[i][field];
      if (!printed) {
        // The lines of a warm-up hold less.
        RC_ASSERT(run.format == LogFormat::llm_tii && !report.steps[i][Field::mfu]);
        continue;
      }
      if (!holds(*printed, *report.steps[i][field]))
        RC_FAIL(std::string(to_string(field)) + " of line " + std::to_string(printed->line) + " is [" +
                std::to_string(printed->low) + ", " + std::to_string(printed->high) + "], not " +
                std::to_string(*report.steps[i][field]));
    }
  }
  const bool by_samples =
      run.format == LogFormat::megatron && run.schedule_by == tests::SimulatedRun::ScheduleBy::samples;
  for (const Setting setting : printed_settings(run.format)) {
    // The schedule of samples; steps stand in the lines alone.
    if (by_samples && (setting == Setting::warmup_steps || setting == Setting::decay_steps)) {
      const bool warmup = setting == Setting::warmup_steps;
      const auto& read = record[warmup ? Setting::warmup_samples : Setting::decay_samples];
      RC_ASSERT(read && holds(*read, *report[setting] * run.sequences()));
      continue;
    }
    if (!record[setting]) RC_FAIL(std::string(to_string(setting)) + " was not read");
    if (!holds(*record[setting], *report[setting]))
      RC_FAIL(std::string(to_string(setting)) + " is " + std::to_string(record[setting]->value) + ", not " +
              std::to_string(*report[setting]));
  }
}

class RoundTripSpec : public testing::TestWithParam<LogFormat> {};

TEST_P(RoundTripSpec, ThreeHundredLogsReadBackToWhatWasPrinted) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = 300;
  const auto result = rc::detail::checkTestable(
      [] {
        const tests::SimulatedRun run = tests::simulate(GetParam(), *rc::gen::arbitrary<std::uint64_t>());
        const RunRecord record = read_back(tests::render(run), options_for(run));
        check_numbers(run, record);
        const std::string name(to_string(run.format));
        RC_ASSERT(name.starts_with(record.format.name) || record.format.name == "mapped");
      },
      rc::detail::TestMetadata(), params);
  if (!result.template is<rc::detail::SuccessResult>()) {
    std::ostringstream why;
    rc::detail::printResultMessage(result, why);
    FAIL() << why.str();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, RoundTripSpec,
    testing::Values(LogFormat::assay, LogFormat::llm_tii, LogFormat::llm_tii_json, LogFormat::torchtitan,
                    LogFormat::kempnerforge, LogFormat::megatron, LogFormat::nanogpt, LogFormat::llmc,
                    LogFormat::llmq, LogFormat::llmq_json, LogFormat::hugging_face,
                    LogFormat::hugging_face_console, LogFormat::csv, LogFormat::json_lines),
    [](const auto& parameter) { return std::string(tests::to_string(parameter.param)); });

}  // namespace
}  // namespace assay::spec::audit::round_trip_test
