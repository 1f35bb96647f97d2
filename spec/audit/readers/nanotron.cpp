#include "spec/audit/readers/nanotron.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/audit/readers/megatron_unsaid.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"

namespace assay::spec::audit::nanotron {
namespace {

/// A sequence is longer than this; tokens of a step over its batch are fewer where that counts tokens.
constexpr double shortest_sequence = 8;

std::string_view value_of(std::string_view text, std::string_view key) {
  const std::string_view rest = behind(text, key);
  return trimmed(rest.substr(0, rest.find('|')));
}

/// Numbers are rounded to three significant digits, and zeros at their end are left out ("1.6M" is 1.60M).
void round_to_three(Printed& printed) {
  if (!(printed.value > 0) || !std::isfinite(printed.value)) return;
  const double half = 0.5 * std::pow(10.0, std::floor(std::log10(printed.value) + 1e-12) - 2);
  if (printed.high - printed.low <= 2 * half) return;  // more digits: a version that rounds otherwise
  printed.low = printed.value - half;
  printed.high = printed.value + half;
}

bool positive(const std::optional<Printed>& printed) { return printed && printed->low > 0; }

/// The rate of all GPUs and one's are printed, the first over their number.
std::optional<Printed> gpus_of(const Step& step, std::int64_t line) {
  const auto &all = step[Field::tokens_per_second], &one = step[Field::gpu_tokens_per_second];
  if (!positive(all) || !positive(one)) return std::nullopt;
  return only_whole(all->low / one->high, all->high / one->low, line);
}

/// What nothing states: the length that makes the step's tokens of its sequences.
std::optional<Printed> length_of(const Step& step, const Printed& sequences, std::int64_t line) {
  const auto &rate = step[Field::tokens_per_second], &seconds = step[Field::seconds];
  if (!positive(rate) || !positive(seconds) || !(sequences.low > 0)) return std::nullopt;
  const double low = rate->low * seconds->low / sequences.high,
               high = rate->high * seconds->high / sequences.low;
  if (const auto whole = only_whole(low, high, line)) return whole;
  return Printed{rate->value * seconds->value / sequences.value, low, high, line};
}

}  // namespace

void Run::read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  if (text.find("Config(general=GeneralArgs(") != std::string_view::npos) {
    in_configuration_ = true;
    steps_ = false;
  }
  if (!in_configuration_) return;
  constexpr SettingName known[] = {{"dp", Setting::data_parallel},
                                   {"pp", Setting::pipeline_parallel},
                                   {"tp", Setting::tensor_parallel},
                                   {"context_parallel_size", Setting::context_parallel},
                                   {"expert_parallel_size", Setting::expert_parallel},
                                   {"sequence_length", Setting::sequence_length},
                                   {"train_steps", Setting::max_steps},
                                   {"micro_batch_size", Setting::micro},
                                   {"batch_accumulation_per_replica", Setting::accumulation}};
  for (const SettingName& one : known)
    if (const auto value = argument(text, one.name); value.data())
      builder.setting(one.setting, parse_printed(value, one.kind, one.unit, line));
}

void Run::read_step(std::string_view text, std::int64_t line, Step& step, std::optional<Printed> batch,
                    RecordBuilder& builder) {
  in_configuration_ = false;
  // Versions before print "1.420000E+04", and a fixed number of digits behind the point.
  const bool three_digits = value_of(text, "tokens_per_sec: ").find_first_of("Ee") == std::string_view::npos;
  if (three_digits) {
    for (auto& field : step.fields)
      if (field && !field->exact()) round_to_three(*field);
    if (batch && !batch->exact()) round_to_three(*batch);
  }
  if (!std::exchange(steps_, true)) {
    builder.format().name = builder.format().convention = "nanotron";
    builder.format().tokens_per_second = Scope::all;
    builder.format().averaged.clear();
    if (!builder.current(Setting::gpus)) builder.summary(Setting::gpus, gpus_of(step, line));
    first_step(line, step, batch, builder);
  }
  if (!batch || !(batch->low > 0)) return;
  step[counts_tokens_ ? Field::tokens : Field::step_sequences] = batch;
  if (batch_ && (batch->high < batch_->low || batch->low > batch_->high)) {
    // A batch that grows is of no one size.
    builder.forget(counts_tokens_ ? Setting::tokens_per_step : Setting::sequences);
    batch_.reset();
  }
}

/// Versions count sequences or tokens as the batch: the tokens of the step are a long sequence's many times
/// the first, and about the second.
void Run::first_step(std::int64_t line, const Step& step, const std::optional<Printed>& batch,
                     RecordBuilder& builder) {
  const auto &rate = step[Field::tokens_per_second], &seconds = step[Field::seconds];
  batch_ = batch;
  if (!positive(batch) || !positive(rate) || !positive(seconds)) return;
  counts_tokens_ = rate->value * seconds->value < shortest_sequence * batch->value;
  if (counts_tokens_) {
    if (!builder.current(Setting::tokens_per_step)) builder.summary(Setting::tokens_per_step, batch);
    return;
  }
  if (!builder.current(Setting::sequences)) builder.summary(Setting::sequences, batch);
  if (!builder.current(Setting::sequence_length))
    builder.summary(Setting::sequence_length, length_of(step, *batch, line));
}

}  // namespace assay::spec::audit::nanotron
