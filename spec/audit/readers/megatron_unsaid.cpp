#include "spec/audit/readers/megatron_unsaid.hpp"

#include <cmath>
#include <utility>

#include "spec/audit/readers/scan.hpp"
#include "spec/interval.hpp"

namespace assay::spec::audit {

std::optional<Printed> only_whole(double low, double high, std::int64_t line) {
  const double least = std::ceil(low), most = std::floor(high);
  return least == most && least >= 1 ? std::optional(exactly(least, line)) : std::nullopt;
}

namespace megatron {
namespace {

bool positive(const std::optional<Printed>& printed) {
  return printed && printed->low > 0 && std::isfinite(printed->high);
}

/// Primus names the last rank of all: "[rank-7/8]".
std::optional<Printed> gpus_named(std::string_view before, std::int64_t line) {
  std::string_view rest = behind(before, "rank-");
  if (!rest.data() || !take_number(rest, Kind::counted, 1, line) || !rest.starts_with('/'))
    return std::nullopt;
  rest.remove_prefix(1);
  return take_number(rest, Kind::counted, 1, line);
}

/// Tokens/s of a GPU x step time / sequences: the length over the number of GPUs. [tokens]
std::optional<Interval> share_of_gpu(const Step& step, const std::optional<Printed>& batch) {
  const auto &rate = step[Field::tokens_per_second], &seconds = step[Field::seconds];
  if (!positive(rate) || !positive(seconds) || !positive(batch)) return std::nullopt;
  return Interval{rate->low * seconds->low / batch->high, rate->high * seconds->high / batch->low};
}

}  // namespace

void Unsaid::settle(Setting setting, const std::optional<Printed>& value, RecordBuilder& builder) {
  const bool length = setting == Setting::sequence_length;
  std::optional<double>& settled = length ? length_ : gpus_;
  bool& differ = length ? lengths_differ_ : gpus_differ_;
  if (!value || differ) return;
  const auto& stated = builder.current(setting);
  if (!stated) {
    settled = value->value;
    return builder.summary(setting, value);
  }
  if (stated->value == value->value) return;
  // Lengths that the lines print grow from less than the stated one; what they make is held against it.
  const bool printed_length = length && lines_print_it_;
  if (!settled && !printed_length) return;
  differ = true;
  builder.forget(setting);
}

void Unsaid::read(std::string_view text, const Step& step, const std::optional<Printed>& batch,
                  RecordBuilder& builder) {
  const std::int64_t line = step[Field::step]->line;
  const auto& length = step[Field::step_length];
  lines_print_it_ = length.has_value();
  if (positive(length)) settle(Setting::sequence_length, length, builder);
  const double number = step[Field::step]->value;
  const auto planned =
      step[Field::planned_steps] ? std::optional(step[Field::planned_steps]->value) : std::nullopt;
  const bool begins = !last_ || number <= *last_ || planned != planned_;
  last_ = number;
  planned_ = planned;
  if (!begins) return;
  settle(Setting::gpus, gpus_named(text.substr(0, text.find("iteration")), line), builder);
  if (gpus_differ_ && length_ && !std::exchange(lengths_differ_, true))
    builder.forget(Setting::sequence_length);
  const auto &tokens = step[Field::tokens_total], &sequences = step[Field::sequences_total];
  if (!length && positive(tokens) && positive(sequences))
    settle(Setting::sequence_length,
           only_whole(tokens->low / sequences->high, tokens->high / sequences->low, line), builder);
  const auto share = share_of_gpu(step, batch);
  const auto &gpus = builder.current(Setting::gpus), &of_all = builder.current(Setting::sequence_length);
  if (!share) return;
  if (gpus && (!of_all || (length_ && !tokens && !length)))
    settle(Setting::sequence_length, only_whole(share->low * gpus->low, share->high * gpus->high, line),
           builder);
  else if (of_all && (!gpus || gpus_))
    settle(Setting::gpus, only_whole(of_all->low / share->high, of_all->high / share->low, line), builder);
}

}  // namespace megatron
}  // namespace assay::spec::audit
