#include "spec/audit/readers/stated_settings.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "spec/audit/evidence.hpp"
#include "spec/audit/readers/option_words.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/json.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

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
    refuse_option("--set", "dtype=" + quote(value) + " is no dtype that a data sheet has a peak of" +
                               suggestion(value, known));
  }
  if (name == "schedule" && !schedule_known(value))
    refuse_option("--set",
                  "schedule=" + quote(value) + " is no schedule that is judged" +
                      suggestion(value, {"constant", "linear", "cosine", "inverse-square-root", "wsd"}));
  if (name == "device" && value != "cpu" && value != "cuda")
    refuse_option("--set",
                  "device=" + quote(value) + " is neither cpu nor cuda; a GPU's name is given as gpu=");
}

/// What a setting may be stated in. Lengths, sizes and ranks have no unit: "2k" is 2000 or 2048.
std::vector<Measures> kinds_of(Setting setting) {
  switch (setting) {
    case Setting::gpu_memory:
      return {Measures::bytes};
    case Setting::flops_per_token:
    case Setting::ffn_flops_per_layer:
    case Setting::peak_flops:
    case Setting::total_flops:
      return {Measures::flops, Measures::factor};
    case Setting::total_seconds:
    case Setting::average_seconds:
      return {Measures::time};
    case Setting::average_mfu:
      return {Measures::share};
    case Setting::tokens_per_step:
    case Setting::parameters:
    case Setting::parameters_nonembedding:
    case Setting::warmup_steps:
    case Setting::decay_steps:
    case Setting::wsd_decay_steps:
    case Setting::train_samples:
    case Setting::warmup_samples:
    case Setting::decay_samples:
    case Setting::wsd_decay_samples:
    case Setting::max_steps:
    case Setting::final_step:
    case Setting::total_tokens:
    case Setting::expected_tokens_per_second_half_mfu:
    case Setting::average_tokens_per_second:
    case Setting::average_steps_per_second:
    case Setting::average_sequences_per_second:
      return {Measures::factor};
    default:
      return {};
  }
}

/// Counts that are written in billions, "6.74B": of parameters, and of tokens of whole runs.
bool in_billions(Setting setting) {
  return setting == Setting::parameters || setting == Setting::parameters_nonembedding ||
         setting == Setting::tokens_per_step || setting == Setting::total_tokens;
}

std::string as_count(double number) {
  return number == std::floor(number) && std::abs(number) < 1e15
             ? std::to_string(static_cast<std::int64_t>(number))
             : json_number(number);
}

/// Refuses `unit`, with the form that is likeliest meant.
[[noreturn]] void refuse_unit(const std::string& name, const std::string& value, std::string_view number,
                              const std::string& unit, const std::vector<std::string>& allowed) {
  std::string takes, form = name + "=" + std::string(number);
  for (const std::string& one : allowed) takes += (takes.empty() ? "" : " ") + one;
  const KnownUnit* const known = unit_named(unit);
  if (!allowed.empty()) {
    std::string near = allowed.size() > 3 && allowed[3] == "GB" ? "GB" : allowed.front();
    for (const std::string& one : allowed)
      if (std::equal(one.begin(), one.end(), unit.begin(), unit.end(),
                     [](char a, char b) { return std::tolower(a) == std::tolower(b); }))
        near = one;
    if (const auto guess = known ? std::nullopt : nearest(unit, allowed)) near = *guess;
    refuse_option("--set", name + "=" + quote(value) + ": " + quote(unit) + " is no unit of " + name +
                               ", which takes " + takes + "; write it like " + form + near);
  }
  const auto read = parse_printed(number, Kind::counted);
  if (known && known->measures == Measures::factor && known->size <= 1e6 && read)
    form = name + "=" + as_count(read->value * known->size) + ", or " + name + "=" +
           as_count(read->value * (known->size == 1e3 ? 0x1p10 : 0x1p20)) + " where that is meant";
  refuse_option("--set", name + "=" + quote(value) + ": " + name + " takes no unit; write " + form);
}

/// The number that `value` states. Errors: UserError(usage) for none, and for a unit of something else.
Printed stated_number(Setting setting, const std::string& name, const std::string& value) {
  const std::string_view token = number_token(value);
  const std::string unit(trimmed(std::string_view(value).substr(token.size())));
  std::vector<std::string> allowed = unit_names(kinds_of(setting));
  const bool billions = in_billions(setting) && unit == "B";  // else bytes
  if (in_billions(setting)) allowed.emplace_back("B");
  const bool takes = std::find(allowed.begin(), allowed.end(), unit) != allowed.end();
  if (!token.empty() && !unit.empty() && !takes) refuse_unit(name, value, token, unit, allowed);
  const double size = billions ? 1e9 : takes ? unit_named(unit)->size : 1;
  const auto printed = parse_printed(token, Kind::counted, size);
  if (!printed || !std::isfinite(printed->value))
    refuse_option("--set",
                  name + "=" + quote(value) + " is no number; write it like " + name + "=8" +
                      (allowed.empty() ? ""
                                       : ", with a unit like " + name + "=80" +
                                             (setting == Setting::gpu_memory ? "GB" : allowed.front())));
  return *printed;
}

/// Memory in bytes and a peak in FLOP/s that no machine has: the unit is missing.
void refuse_missing_unit(Setting setting, const std::string& name, const std::string& value, double number) {
  const bool memory = setting == Setting::gpu_memory && number < 1e6;
  if ((memory || (setting == Setting::peak_flops && number < 1e9)) && number > 0)
    refuse_option("--set", name + "=" + quote(value) + " is " + value + (memory ? " bytes" : " FLOP/s") +
                               ", which no GPU has; write it with its unit, like " + name + "=" + value +
                               (memory ? "GB" : "TFLOPS"));
}

}  // namespace

void apply_settings(RunRecord& record, const std::string& set) {
  constexpr std::pair<std::string_view, std::string RunRecord::*> names[] = {
      {"model", &RunRecord::model},       {"gpu", &RunRecord::gpu},
      {"device", &RunRecord::device},     {"dtype", &RunRecord::dtype},
      {"schedule", &RunRecord::schedule}, {"parallelism", &RunRecord::parallelism}};
  for (const auto& [name, value] : option_pairs("--set", set)) {
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
      if (field_named(name))
        refuse_option("--set", quote(name) +
                                   " is printed for each step, it is no setting of the run; say which "
                                   "column or key holds it with --map " +
                                   name + "=COLUMN");
      auto known = all_names<Setting>(setting_count);
      for (const auto& [word, member] : names) known.emplace_back(word);
      refuse_option("--set", "no setting is called " + quote(name) + suggestion(name, known));
    }
    const Printed printed = stated_number(*setting, name, value);
    refuse_missing_unit(*setting, name, value, printed.value);
    // "3.1M" tokens are whole but for the last bits of the product.
    const double nearest_whole = std::round(printed.value);
    if (whole(*setting) &&
        (nearest_whole > 0x1p62 || std::abs(printed.value - nearest_whole) > 1e-12 * std::abs(nearest_whole)))
      refuse_option("--set", name + "=" + quote(value) + " must be an integer" +
                                 (nearest_whole > 0x1p62 ? " below 2^62" : ""));
    const bool size = *setting <= Setting::gpu_memory;  // counts, dimensions, rates of machines
    if (*setting != Setting::end_of_document && (printed.value < 0 || (size && printed.value == 0)))
      refuse_option("--set", name + "=" + quote(value) + " must be " + (size ? "above 0" : "0 or more"));
    record.state(*setting, printed, "--set " + name + "=" + value);
  }
}

void check_settings(const std::string& set) {
  RunRecord nothing;
  apply_settings(nothing, set);
}

}  // namespace assay::spec::audit
