#include "spec/audit/readers/nanotron.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/audit/digits.hpp"
#include "spec/audit/readers/megatron_unsaid.hpp"
#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::nanotron {
namespace {

/// A sequence is longer than this; tokens of a step over its batch are fewer where that counts tokens.
constexpr double shortest_sequence = 8;

std::string_view value_of(std::string_view text, std::string_view key) {
  const std::string_view rest = behind(text, key);
  return trimmed(rest.substr(0, rest.find('|')));
}

/// 10^floor(log10(value)) / 100. Domain: value > 0, finite.
double unit_of_third_digit(double value) {
  constexpr double slack = 1e-12;  // of log10: a product of a unit may fall short of its power of ten
  constexpr int most = 22;
  const double scaled = value * (1 + 2.3 * slack);
  if (scaled >= 1 && scaled < powers_of_ten[most]) {
    const double* const above = std::upper_bound(powers_of_ten, powers_of_ten + most, scaled);
    const auto digits = above - powers_of_ten;
    return digits >= 3 ? powers_of_ten[digits - 3] : inverse_powers_of_ten[3 - digits];
  }
  if (scaled < 1 && scaled >= inverse_powers_of_ten[most - 2]) {
    int places = 1;
    while (scaled < inverse_powers_of_ten[places]) ++places;
    return inverse_powers_of_ten[places + 2];
  }
  return std::pow(10.0, std::floor(std::log10(value) + slack) - 2);
}

/// Numbers are rounded to three significant digits, and zeros at their end are left out ("1.6M" is 1.60M).
void round_to_three(Printed& printed) {
  if (!(printed.value > 0) || !std::isfinite(printed.value)) return;
  const double half = 0.5 * unit_of_third_digit(printed.value);
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

/// What nothing states: the length that makes the step's `tokens` of its sequences.
std::optional<Printed> length_of(const Printed& tokens, const Printed& sequences, std::int64_t line) {
  if (!(sequences.low > 0)) return std::nullopt;
  const double low = tokens.low / sequences.high, high = tokens.high / sequences.low;
  if (const auto whole = only_whole(low, high, line)) return whole;
  return Printed{tokens.value / sequences.value, low, high, line};
}

/// Versions before print "1.420000E+04", and a fixed number of digits behind the point.
bool of_three_digits(std::string_view text) {
  return value_of(text, "tokens_per_sec: ").find_first_of("Ee") == std::string_view::npos;
}
void round_to_three(Step& step) {
  for (auto& field : step.fields)
    if (field && !field->exact()) round_to_three(*field);
}

/// Tokens of the step by its rate and time, and by those of the run over its steps: none where one of the two
/// is not printed.
std::optional<Printed> tokens_by_rate(const Step& step, std::int64_t line) {
  const auto &rate = step[Field::tokens_per_second], &seconds = step[Field::seconds];
  if (!positive(rate) || !positive(seconds)) return std::nullopt;
  return Printed{rate->value * seconds->value, rate->low * seconds->low, rate->high * seconds->high, line};
}
std::optional<Printed> tokens_by_total(const Step& step, std::int64_t line) {
  const auto &total = step[Field::tokens_total], &number = step[Field::step];
  if (!positive(total) || !positive(number)) return std::nullopt;
  return Printed{total->value / number->value, total->low / number->value, total->high / number->value, line};
}

/// Whether what is printed leaves open that the tokens are as many as the batch.
bool as_many(const Printed& tokens, const Printed& batch) {
  return tokens.low <= batch.high && batch.low <= tokens.high;
}

/// Whether rate x time is rather wrong than the run's tokens: seconds stand where milliseconds should, or
/// both rates are equal and a half or less of what is needed, so one GPU's may stand as that of all.
bool rate_is_wrong(const Step& step, const Printed& by_rate, const Printed& by_total, std::int64_t line) {
  if (as_many(by_total, {1e3 * by_rate.value, 1e3 * by_rate.low, 1e3 * by_rate.high, line})) return true;
  const auto gpus = gpus_of(step, line);
  return gpus && gpus->value == 1 && by_total.high >= 2 * by_rate.low;
}

}  // namespace

void Run::read_header(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  if (text.find(configuration_word) != std::string_view::npos) {
    in_configuration_ = true;
    configuration_ = {};
    steps_ = false;
  }
  if (!in_configuration_) return;
  configuration_.read(text, line, builder);
  // Of those that a checkpoint holds it says that they are loaded.
  if (text.find("Parametrizing model parameters using ") != std::string_view::npos)
    builder.name(&RunRecord::weights, "new");
}

void Run::read_step(std::string_view text, std::int64_t line, Step& step, std::optional<Printed> batch,
                    RecordBuilder& builder) {
  in_configuration_ = false;
  if (of_three_digits(text)) {
    round_to_three(step);
    if (batch && !batch->exact()) round_to_three(*batch);
  }
  if (!std::exchange(steps_, true)) {
    builder.format().name = builder.format().convention = "nanotron";
    builder.format().tokens_per_second = Scope::all;
    builder.format().averaged.clear();
    if (!builder.current(Setting::gpus)) builder.summary(Setting::gpus, gpus_of(step, line));
    first_step(line, step, batch, builder);
  }
  batch_here_ = positive(batch) ? batch : std::nullopt;
  if (!batch_here_) return;
  step[batch_field()] = batch;
  if (batch_ && (batch->high < batch_->low || batch->low > batch_->high)) {
    // A batch that grows is of no one size.
    builder.forget(counts_tokens_ ? Setting::tokens_per_step : Setting::sequences);
    batch_.reset();
  }
}

bool Run::read_alike(std::string_view text, std::int64_t line, Step& step) const {
  if (!steps_) return false;
  if (of_three_digits(text)) round_to_three(step);
  if (batch_here_) (step[batch_field()] = batch_here_)->line = line;
  return true;
}

/// Versions count sequences or tokens as the batch: the tokens of the step are a long sequence's many times
/// the first, and about the second. Rate and time say how many they are, or the run's tokens over its steps
/// where a wrong unit or another's rate makes sequences of the first that are none.
void Run::first_step(std::int64_t line, const Step& step, const std::optional<Printed>& batch,
                     RecordBuilder& builder) {
  batch_ = batch;
  const auto by_rate = tokens_by_rate(step, line), by_total = tokens_by_total(step, line);
  if (!positive(batch) || !by_rate) return;
  const auto few = [&](const Printed& tokens) { return tokens.value < shortest_sequence * batch->value; };
  const bool total_counts_more = by_total && !few(*by_total);
  counts_tokens_ = as_many(*by_rate, *batch) || (by_total && as_many(*by_total, *batch)) ||
                   (few(*by_rate) && !total_counts_more);
  if (counts_tokens_) {
    if (!builder.current(Setting::tokens_per_step)) builder.summary(Setting::tokens_per_step, batch);
    return;
  }
  if (!builder.current(Setting::sequences)) builder.summary(Setting::sequences, batch);
  const bool by_rate_is_wrong =
      total_counts_more && (few(*by_rate) || rate_is_wrong(step, *by_rate, *by_total, line));
  if (!builder.current(Setting::sequence_length))
    builder.summary(Setting::sequence_length,
                    length_of(by_rate_is_wrong ? *by_total : *by_rate, *batch, line));
}

}  // namespace assay::spec::audit::nanotron
