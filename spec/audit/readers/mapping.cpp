#include "spec/audit/readers/mapping.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/audit/evidence.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

[[noreturn]] void usage(const std::string& option, const std::string& message) {
  throw UserError(ExitCode::usage, option + ": " + message);
}

/// What a unit measures; a factor ("k") goes with any count or rate.
enum class Measures { time, share, factor, bytes, flops };

struct KnownUnit {
  std::string_view name;
  double size;
  Measures measures;
};
constexpr KnownUnit units[] = {
    {"s", 1, Measures::time},          {"ms", 1e-3, Measures::time},       {"us", 1e-6, Measures::time},
    {"ns", 1e-9, Measures::time},      {"min", 60, Measures::time},        {"h", 3600, Measures::time},
    {"%", 0.01, Measures::share},      {"k", 1e3, Measures::factor},       {"M", 1e6, Measures::factor},
    {"G", 1e9, Measures::factor},      {"T", 1e12, Measures::factor},      {"P", 1e15, Measures::factor},
    {"B", 1, Measures::bytes},         {"kB", 1e3, Measures::bytes},       {"MB", 1e6, Measures::bytes},
    {"GB", 1e9, Measures::bytes},      {"TB", 1e12, Measures::bytes},      {"KiB", 0x1p10, Measures::bytes},
    {"MiB", 0x1p20, Measures::bytes},  {"GiB", 0x1p30, Measures::bytes},   {"TiB", 0x1p40, Measures::bytes},
    {"TFLOPS", 1e12, Measures::flops}, {"TFLOP/s", 1e12, Measures::flops}, {"GFLOPs", 1e9, Measures::flops}};

const KnownUnit* unit_named(std::string_view name) {
  const auto* const known =
      std::find_if(std::begin(units), std::end(units), [&](const KnownUnit& u) { return u.name == name; });
  return known == std::end(units) ? nullptr : known;
}

/// Whether numbers of `field` may be printed in a unit of that kind.
bool fits(Field field, Measures measures) {
  switch (field) {
    case Field::seconds:
    case Field::elapsed:
      return measures == Measures::time;
    case Field::mfu:
    case Field::hfu:
      return measures == Measures::share;
    case Field::memory_allocated:
    case Field::memory_peak:
    case Field::memory_reserved:
      return measures == Measures::bytes || measures == Measures::factor;
    case Field::flops_rate:
    case Field::peak_flops:
    case Field::flops_per_token:
      return measures == Measures::flops || measures == Measures::factor;
    case Field::tokens_per_second:
    case Field::tokens:
    case Field::tokens_total:
    case Field::sequences_total:
      return measures == Measures::factor;
    default:
      return false;
  }
}

std::string units_of(Field field) {
  std::string out;
  for (const KnownUnit& unit : units)
    if (fits(field, unit.measures)) out += (out.empty() ? "" : " ") + std::string(unit.name);
  return out;
}

/// Errors: UserError(usage) for a unit that is not known, or is not one of `field`.
double unit_for(Field field, const std::string& name, const std::string& unit) {
  const KnownUnit* known = unit_named(unit);
  if (known && fits(field, known->measures)) return known->size;
  const std::string allowed = units_of(field);
  usage("--map", (known ? quote(unit) + " is no unit of " : "unknown unit " + quote(unit) + " of ") + name +
                     (allowed.empty() ? "; it takes none" : "; it takes " + allowed));
}

/// "a=b,c=d" in pairs.
std::vector<std::pair<std::string, std::string>> pairs(const std::string& option, const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    const std::string_view part = trimmed(std::string_view(text).substr(from, to - from));
    from = to + 1;
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size())
      usage(option, quote(part) + " is not NAME=VALUE; write it like " +
                        (option == "--map" ? "step=iter,seconds=time_ms:ms" : "gpus=8,gpu=NVIDIA B200"));
    const std::string name(trimmed(part.substr(0, equals))), value(trimmed(part.substr(equals + 1)));
    for (const auto& [other, before] : out)
      if (other == name)
        usage(option,
              name + " is given twice, as " + quote(before) + " and " + quote(value) + "; give it once");
    out.emplace_back(name, value);
  }
  return out;
}

template <class Enum>
std::vector<std::string> all_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.emplace_back(to_string(static_cast<Enum>(i)));
  return names;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  if (const auto guess = nearest(word, known)) return "; did you mean " + quote(*guess) + "?";
  std::string out = "; known are ";
  for (std::size_t i = 0; i < known.size(); ++i) out += (i ? ", " : "") + known[i];
  return out;
}

Kind kind_of(Field field) {
  switch (field) {
    case Field::step:
    case Field::rank:
    case Field::tokens:
    case Field::tokens_total:
    case Field::sequences_total:
    case Field::skipped:
      return Kind::counted;
    default:
      return Kind::measured;
  }
}

/// Counts that a person states of a run: no part of one, and no more than a counter holds.
bool whole(Setting setting) {
  return setting <= Setting::expert_parallel || (setting >= Setting::layers && setting <= Setting::vocab) ||
         (setting >= Setting::warmup_steps && setting <= Setting::max_steps) ||
         setting == Setting::final_step;
}

/// A name that is to mean something is checked as the command line's own options are.
void check_name(const std::string& name, const std::string& value) {
  if (name == "model") find_model(value);
  if (name == "gpu") named_gpu(value);
  if (name == "dtype" && !computing_precision(value)) {
    std::vector<std::string> known;
    for (const Precision precision : precisions()) known.emplace_back(to_string(precision));
    usage("--set", "dtype=" + quote(value) + " is no dtype that a data sheet has a peak of" +
                       suggestion(value, known));
  }
  if (name == "schedule" && !schedule_known(value))
    usage("--set", "schedule=" + quote(value) + " is no schedule that is judged" +
                       suggestion(value, {"constant", "linear", "cosine", "inverse-square-root", "wsd"}));
  if (name == "device" && value != "cpu" && value != "cuda")
    usage("--set", "device=" + quote(value) + " is neither cpu nor cuda; a GPU's name is given as gpu=");
}

}  // namespace

Mapping::Mapping(const std::string& map) {
  for (const auto& [name, column] : pairs("--map", map)) {
    const auto field = field_named(name);
    if (!field)
      usage("--map", "no field is called " + quote(name) + suggestion(name, all_names<Field>(field_count)));
    const std::size_t colon = column.rfind(':');
    double unit = 1;
    if (colon != std::string::npos && colon > 0) unit = unit_for(*field, name, column.substr(colon + 1));
    add(std::string_view(column).substr(0, colon), *field, unit);
    given_.push_back({name, "--map " + name + "=" + column, {}, {}});
  }
  stated_ = !columns_.empty();
  if (stated_) return;
  for (std::size_t i = 0; i < field_count; ++i)
    add(to_string(static_cast<Field>(i)), static_cast<Field>(i), 1);
  // LLaMA-Factory's trainer_log.jsonl, ms-swift's logging.jsonl.
  add("grad_norm", Field::gradient_norm, 1);
  add("current_steps", Field::step, 1);
  add("lr", Field::learning_rate, 1);
  add("total_tokens", Field::tokens_total, 1);
}

void Mapping::add(std::string_view column, Field field, double unit) {
  auto known =
      std::find_if(columns_.begin(), columns_.end(), [&](const Column& c) { return c.name == column; });
  if (known == columns_.end()) known = columns_.insert(known, Column{std::string(column), {}});
  known->meanings.push_back({field, kind_of(field), unit});
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
    usage("--map", "the log has no column " + missing + "; " + of_log + "; name columns of the log");
}

void Mapping::require_keys(const std::array<bool, field_count>& filled,
                           const std::vector<std::string>& keys) const {
  std::string listed;
  for (const std::string& key : keys) listed += (listed.empty() ? "" : ", ") + key;
  require_columns([&](std::string_view, Field field) { return filled[static_cast<std::size_t>(field)]; },
                  "no line holds a number under that key, its keys are " + quote(listed));
}

bool says_something(const Step& step) {
  for (std::size_t i = 0; i < field_count; ++i)
    if (step.fields[i] && static_cast<Field>(i) != Field::step && static_cast<Field>(i) != Field::rank)
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
    field = parse_printed(trimmed(token), meaning.kind, meaning.unit, line);
    if (taken != Taken::unreadable) taken = field ? Taken::read : Taken::unreadable;
  }
  return taken;
}

void apply_settings(RunRecord& record, const std::string& set) {
  constexpr std::pair<std::string_view, std::string RunRecord::*> names[] = {
      {"model", &RunRecord::model},       {"gpu", &RunRecord::gpu},
      {"device", &RunRecord::device},     {"dtype", &RunRecord::dtype},
      {"schedule", &RunRecord::schedule}, {"parallelism", &RunRecord::parallelism}};
  for (const auto& [name, value] : pairs("--set", set)) {
    const auto text = std::find_if(std::begin(names), std::end(names),
                                   [&, n = name](const auto& k) { return k.first == n; });
    if (text != std::end(names)) {
      check_name(name, value);
      record.state(name, text->second, value, "--set " + name + "=" + value);
      if (name == "gpu") record.device.clear();
      continue;
    }
    const auto setting = setting_named(name);
    if (!setting) {
      auto known = all_names<Setting>(setting_count);
      for (const auto& [word, member] : names) known.emplace_back(word);
      usage("--set", "no setting is called " + quote(name) + suggestion(name, known));
    }
    const std::string_view token = number_token(value);
    const std::string_view unit = trimmed(std::string_view(value).substr(token.size()));
    const KnownUnit* known_unit = unit_named(unit);
    const auto printed = unit.empty() || known_unit
                             ? parse_printed(token, Kind::counted, known_unit ? known_unit->size : 1)
                             : std::nullopt;
    if (!printed || !std::isfinite(printed->value))
      usage("--set", name + "=" + quote(value) + " is no number; write it like " + name +
                         "=8, with a unit like " + name + "=80GB where one is needed");
    // "3.1M" tokens are whole but for the last bits of the product.
    const double nearest_whole = std::round(printed->value);
    if (whole(*setting) && (nearest_whole > 0x1p62 ||
                            std::abs(printed->value - nearest_whole) > 1e-12 * std::abs(nearest_whole)))
      usage("--set", name + "=" + quote(value) + " must be an integer" +
                         (nearest_whole > 0x1p62 ? " below 2^62" : ""));
    const bool size = *setting <= Setting::gpu_memory;  // counts, dimensions, rates of machines
    if (*setting != Setting::end_of_document && (printed->value < 0 || (size && printed->value == 0)))
      usage("--set", name + "=" + quote(value) + " must be " + (size ? "above 0" : "0 or more"));
    record.state(*setting, *printed, "--set " + name + "=" + value);
  }
}

void check_settings(const std::string& set) {
  RunRecord nothing;
  apply_settings(nothing, set);
}

}  // namespace assay::spec::audit
