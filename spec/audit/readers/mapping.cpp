#include "spec/audit/readers/mapping.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/audit/readers/option_words.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

/// What numbers of `field` may be printed in.
std::vector<Measures> kinds_of(Field field) {
  switch (field) {
    case Field::seconds:
    case Field::elapsed:
    case Field::phases:
      return {Measures::time};
    case Field::mfu:
    case Field::hfu:
    case Field::memory_share:
      return {Measures::share};
    case Field::memory_allocated:
    case Field::memory_peak:
    case Field::memory_reserved:
      return {Measures::bytes, Measures::factor};
    case Field::flops_rate:
    case Field::peak_flops:
    case Field::flops_per_token:
      return {Measures::flops, Measures::factor};
    case Field::tokens_per_second:
    case Field::tokens:
    case Field::tokens_total:
    case Field::sequences_total:
      return {Measures::factor};
    default:
      return {};
  }
}

bool is_share(Field field) {
  const std::vector<Measures> kinds = kinds_of(field);
  return std::find(kinds.begin(), kinds.end(), Measures::share) != kinds.end();
}

bool is_time(Field field) {
  const std::vector<Measures> kinds = kinds_of(field);
  return std::find(kinds.begin(), kinds.end(), Measures::time) != kinds.end();
}

constexpr double one_percent = 0.01;

/// "0:03:29", "1 day, 5:06:09", "0:00:01.512000": as Python writes a time, whose last digit may be rounded or
/// cut off. Not where the user said another unit.
std::optional<Printed> read_clock(std::string_view text, double unit, std::int64_t line) {
  if (unit != 1) return std::nullopt;
  const auto whole = [&](std::string_view digits, double below) -> std::optional<double> {
    constexpr std::size_t most = 9;
    if (digits.empty() || digits.size() > most ||
        digits.find_first_not_of("0123456789") != std::string_view::npos)
      return std::nullopt;
    double number = 0;
    for (const char digit : digits) number = 10 * number + (digit - '0');
    return number < below ? std::optional(number) : std::nullopt;
  };
  double days = 0;
  if (const std::size_t comma = text.find(','); comma != std::string_view::npos) {
    std::string_view before = trimmed(text.substr(0, comma));
    const std::size_t blank = before.find(' ');
    const auto number = whole(before.substr(0, blank), 1e9);
    if (!number || blank == std::string_view::npos) return std::nullopt;
    if (const std::string_view word = trimmed(before.substr(blank)); word != "day" && word != "days")
      return std::nullopt;
    days = *number;
    text = trimmed(text.substr(comma + 1));
  }
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;  // minutes and seconds, or hours and minutes?
  const auto hours = whole(text.substr(0, first), 1e9),
             minutes = whole(text.substr(first + 1, second - first - 1), 60);
  text = text.substr(second + 1);
  const std::size_t point = text.find('.');
  const auto seconds = whole(text.substr(0, point), 60);
  if (!hours || !minutes || !seconds) return std::nullopt;
  double fraction = 0, unit_of_last = 1;
  if (point != std::string_view::npos) {
    const std::string_view digits = text.substr(point + 1);
    const auto number = whole(digits, 1e9);
    if (!number) return std::nullopt;
    unit_of_last = std::pow(10, -static_cast<double>(digits.size()));
    fraction = *number * unit_of_last;
  }
  Printed out = exactly(86400 * days + 3600 * *hours + 60 * *minutes + *seconds + fraction, line);
  out.low = std::max(0.0, out.value - 0.5 * unit_of_last);
  out.high = out.value + unit_of_last;
  return out;
}

/// Errors: UserError(usage) for a unit that is not known, or is not one of `field`.
double unit_for(Field field, const std::string& name, const std::string& unit) {
  const KnownUnit* const known = unit_named(unit);
  const std::vector<std::string> allowed = unit_names(kinds_of(field));
  if (known && std::find(allowed.begin(), allowed.end(), unit) != allowed.end()) return known->size;
  std::string takes;
  for (const std::string& one : allowed) takes += " " + one;
  refuse_option("--map", (known ? quote(unit) + " is no unit of " : "unknown unit " + quote(unit) + " of ") +
                             name + (allowed.empty() ? "; it takes none" : "; it takes" + takes));
}

Kind kind_of(Field field) {
  switch (field) {
    case Field::step:
    case Field::rank:
    case Field::tokens:
    case Field::tokens_total:
    case Field::sequences_total:
    case Field::skipped:
    case Field::step_sequences:
    case Field::planned_steps:
    case Field::not_finite:
      return Kind::counted;
    default:
      return Kind::measured;
  }
}

}  // namespace

Mapping::Mapping(const std::string& map) {
  for (const auto& [name, column] : option_pairs("--map", map)) {
    const auto field = field_named(name);
    if (!field)
      refuse_option("--map",
                    "no field is called " + quote(name) + suggestion(name, all_names<Field>(field_count)));
    const std::size_t colon = column.rfind(':');
    double unit = 1;
    if (colon != std::string::npos && colon > 0) unit = unit_for(*field, name, column.substr(colon + 1));
    const std::string_view bare = std::string_view(column).substr(0, colon);
    add(bare, *field, unit);
    if (bare.size() == column.size()) leave_open(bare, *field);
    given_.push_back({name, "--map " + name + "=" + column, {}, {}});
  }
  stated_ = !columns_.empty();
  if (stated_) return;
  for (std::size_t i = 0; i < field_count; ++i) {
    const auto field = static_cast<Field>(i);
    add(to_string(field), field, 1);
    leave_open(to_string(field), field);
  }
  // LLaMA-Factory's trainer_log.jsonl, ms-swift's logging.jsonl.
  add("grad_norm", Field::gradient_norm, 1);
  add("current_steps", Field::step, 1);
  add("lr", Field::learning_rate, 1);
  add("total_tokens", Field::tokens_total, 1);
}

bool Mapping::know_llama_factory() {
  if (stated_) return false;
  if (llama_factory_) return true;
  llama_factory_ = true;
  add("total_steps", Field::planned_steps, 1);
  add("elapsed_time", Field::elapsed, 1);
  add("throughput", Field::tokens_per_second, 1);
  return true;
}

void Mapping::add(std::string_view column, Field field, double unit) {
  auto known =
      std::find_if(columns_.begin(), columns_.end(), [&](const Column& c) { return c.name == column; });
  if (known == columns_.end()) known = columns_.insert(known, Column{std::string(column), {}});
  known->meanings.push_back({field, kind_of(field), unit});
}

void Mapping::leave_open(std::string_view column, Field field) {
  if (is_share(field) && std::find(open_shares_.begin(), open_shares_.end(), column) == open_shares_.end())
    open_shares_.emplace_back(column);
}

std::span<const Mapping::Meaning> Mapping::meanings(std::string_view column, std::size_t& next) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::size_t at = next + i < columns_.size() ? next + i : next + i - columns_.size();
    if (columns_[at].name != column) continue;
    next = at + 1 < columns_.size() ? at + 1 : 0;
    return columns_[at].meanings;
  }
  return {};
}

void Mapping::settle_shares(std::string_view column, std::string_view token) {
  const auto open = std::find(open_shares_.begin(), open_shares_.end(), column);
  if (open == open_shares_.end()) return;
  const auto number = parse_printed(trimmed(token), Kind::measured, 1, 0);
  if (!number || !std::isfinite(number->value)) return;  // "46.65%" says its unit
  open_shares_.erase(open);
  if (number->value <= 1) return;
  for (Column& each : columns_)
    if (each.name == column)
      for (Meaning& meaning : each.meanings)
        if (is_share(meaning.field)) meaning.unit = one_percent;
}

bool Mapping::knows(std::string_view column) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const Column& c) { return c.name == column; });
}

void Mapping::require_columns(const std::function<bool(std::string_view, Field)>& there,
                              const std::string& of_log) const {
  if (!stated_) return;
  std::string missing;
  for (const Column& column : columns_)
    for (const Meaning& meaning : column.meanings)
      if (!there(column.name, meaning.field)) missing += (missing.empty() ? "" : ", ") + quote(column.name);
  if (!missing.empty())
    refuse_option("--map", "the log has no column " + missing + "; " + of_log + "; name columns of the log");
}

void Mapping::require_keys(const std::array<bool, field_count>& filled,
                           const std::vector<std::string>& keys) const {
  std::string listed;
  for (const std::string& key : keys) listed += (listed.empty() ? "" : ", ") + key;
  require_columns([&](std::string_view, Field field) { return filled[static_cast<std::size_t>(field)]; },
                  "no line holds a number under that key, its keys are " + quote(listed));
}

bool Mapping::says_something(const Step& step) const {
  const auto more = [](Field field) { return field != Field::step && field != Field::rank; };
  const bool stamps_alone = std::none_of(columns_.begin(), columns_.end(), [&](const Column& column) {
    return std::any_of(column.meanings.begin(), column.meanings.end(), [&](const Meaning& meaning) {
      return more(meaning.field) && meaning.field != Field::elapsed;
    });
  });
  for (std::size_t i = 0; i < field_count; ++i)
    if (const auto field = static_cast<Field>(i);
        step.fields[i] && more(field) && (stamps_alone || field != Field::elapsed))
      return true;
  return false;
}

void note_key(std::vector<std::string>& keys, std::string_view key) {
  constexpr std::size_t told = 20, longest = 40;  // keys, bytes
  key = key.substr(0, longest);
  if (keys.size() < told && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.emplace_back(key);
}

Mapping::Taken Mapping::take(Step& step, std::span<const Meaning> meanings, std::string_view token,
                             std::int64_t line) {
  Taken taken = Taken::unmapped;
  for (const Meaning& meaning : meanings) {
    auto& field = step[meaning.field];
    std::string_view number = trimmed(token);
    double unit = meaning.unit;
    if (number.ends_with('%') && is_share(meaning.field)) {
      number = trimmed(number.substr(0, number.size() - 1));
      unit = one_percent;
    }
    field = is_time(meaning.field) && number.find(':') != std::string_view::npos
                ? read_clock(number, unit, line)
                : parse_printed(number, meaning.kind, unit, line);
    if (taken != Taken::unreadable) taken = field ? Taken::read : Taken::unreadable;
  }
  return taken;
}

}  // namespace assay::spec::audit
