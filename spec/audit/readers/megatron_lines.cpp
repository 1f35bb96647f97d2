#include "spec/audit/readers/megatron_lines.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "spec/audit/readers/megatron_batch.hpp"

namespace assay::spec::audit::megatron {

namespace {

/// Behind "iteration" of "iteration  10/ 100 | ..."; data() is null on other lines.
std::string_view numbered(std::string_view text) {
  const std::size_t at = text.find("iteration");
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + 9);
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '=' || rest[0] == ':')) rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && std::isdigit(static_cast<unsigned char>(rest[length]))) ++length;
  if (length == 0 || !trimmed(rest.substr(length)).starts_with('/')) return {};
  return rest.find('|') != std::string_view::npos ? rest : std::string_view();
}

bool names_time(std::string_view rest) {
  return rest.find("elapsed") != std::string_view::npos ||
         rest.find("time_per_iteration") != std::string_view::npos;
}

}  // namespace

std::string_view step_line(std::string_view text) {
  const std::string_view rest = numbered(text);
  return rest.data() && names_time(rest) ? rest : std::string_view();
}

namespace {

/// Of what `numbered` gave.
bool tells_samples(std::string_view rest) {
  return trimmed(rest.substr(rest.find('|') + 1)).starts_with("consumed ");
}

}  // namespace

bool begins_broken(std::string_view text) {
  const std::string_view rest = numbered(text);
  return rest.data() && tells_samples(rest);
}

bool begins_step(std::string_view text) {
  const std::string_view rest = numbered(text);
  return rest.data() && (names_time(rest) || tells_samples(rest));
}

namespace {

struct Known {
  std::string_view key;
  Field field;
  Kind kind = Kind::measured;
  double unit = 1;
};
/// In the order of Megatron's line, so that each is found where the last one ended.
constexpr Known known_fields[] = {
    {"consumed samples", Field::sequences_total, Kind::counted},
    {"elapsed time per iteration (ms)", Field::seconds, Kind::measured, 1e-3},
    {"throughput per GPU (TFLOP/s/GPU)", Field::flops_rate, Kind::measured, 1e12},
    {"tokens per GPU (tokens/s/GPU)", Field::tokens_per_second},
    {"tokens/sec/GPU", Field::tokens_per_second},
    {"learning rate", Field::learning_rate},
    {"lm loss", Field::loss},
    {"grad norm", Field::gradient_norm},
    {"total grad norm", Field::gradient_norm},
    {"number of skipped iterations", Field::skipped, Kind::counted},
    {"actual seqlen", Field::step_length, Kind::counted},
    {"curriculum seqlen", Field::step_length, Kind::counted},
    {"number of nan iterations", Field::not_finite, Kind::counted},
    {"samples per second", Field::sequences_per_second},
    {"tokens per gpu per second (tgs)", Field::tokens_per_second},
    {"consumed_samples", Field::sequences_total, Kind::counted},
    {"consumed tokens", Field::tokens_total, Kind::counted},
    {"consumed_tokens", Field::tokens_total, Kind::counted},
    {"elapsed time per iteration(ms)", Field::seconds, Kind::measured, 1e-3},
    {"elapsed_time_per_iteration_ms", Field::seconds, Kind::measured, 1e-3},
    {"time_per_iteration_ms", Field::seconds, Kind::measured, 1e-3},
    {"elapsed time per iteration (s)", Field::seconds},
    {"throughput (TFLOP/s/GPU)", Field::flops_rate, Kind::measured, 1e12},
    {"approx flops per GPU", Field::flops_rate, Kind::measured, 1e12},
    {"TFLOPs", Field::flops_rate, Kind::measured, 1e12},
    {"TFLOPS", Field::flops_rate, Kind::measured, 1e12},
    {"learning_rate", Field::learning_rate},
    {"lm_loss", Field::loss},
    {"loss", Field::loss},
    {"grad_norm", Field::gradient_norm},
    {"tokens_per_sec", Field::tokens_per_second},
    {"tokens_per_sec_per_gpu", Field::gpu_tokens_per_second},
    {"lr", Field::learning_rate},
    {"model_tflops_per_gpu", Field::flops_rate, Kind::measured, 1e12},
    {"hardware_tflops_per_gpu", Field::hardware_flops_rate, Kind::measured, 1e12},
};

/// Of which nothing is taken.
constexpr std::string_view other_names[] = {"loss scale", "params norm", "num zeros", "load_balancing_loss"};

/// Primus: "hip mem usage/free/total/usage_ratio: 153.81GB/102.17GB/255.98GB/60.09%", of the device; GB is
/// 2^30 (256 GB of an MI325X are 255.98).
bool read_device_memory(std::string_view value, std::int64_t line, Step& step, Beside& beside,
                        TakenNumbers* taken) {
  constexpr double gib = 0x1p30;
  const std::string_view used = number_token(value);
  step[Field::memory_reserved] = parse_printed(used, Kind::measured, gib, line);
  if (taken) taken->add(used.data(), Field::memory_reserved, Kind::measured, gib);
  for (const int part : {1, 2, 3}) {
    value.remove_prefix(std::min(value.find('/') + 1, value.size()));
    const std::string_view token = number_token(value);
    if (part == 2) beside.device_memory = parse_printed(token, Kind::measured, gib, line);
    if (part != 3) continue;
    step[Field::memory_share] = parse_printed(token, Kind::measured, 1e-2, line);
    if (taken) taken->add(token.data(), Field::memory_share, Kind::measured, 1e-2);
  }
  return step[Field::memory_reserved] && beside.device_memory && step[Field::memory_share];
}

/// Reads the parts between bars. False when a known one cannot be read.
bool read_parts(std::string_view text, std::int64_t line, Step& step, Beside& beside, TakenNumbers* taken) {
  std::size_t expected = 0;
  while (!text.empty()) {
    std::size_t bar = 0, separator = text.size();
    for (; bar < text.size() && text[bar] != '|'; ++bar)
      if (separator == text.size() && (text[bar] == ':' || text[bar] == '=')) separator = bar;
    // Versions of 2020 put a blank where later ones put a colon: "lm loss 7.1E+00".
    if (separator > bar || separator == text.size()) {
      const std::string_view part = trimmed(text.substr(0, bar));
      const std::size_t blank = part.rfind(' ');
      if (blank != std::string_view::npos)
        separator = static_cast<std::size_t>(part.data() - text.data()) + blank;
    }
    const std::string_view key = trimmed(text.substr(0, std::min(bar, separator)));
    const std::string_view value =
        separator < bar ? trimmed(text.substr(separator + 1, bar - separator - 1)) : std::string_view();
    const bool open = bar == text.size();
    text.remove_prefix(std::min(bar + 1, text.size()));
    if (separator >= bar) continue;
    if (is_batch(key)) {
      beside.batch = prefixed_number(value, Kind::counted, 1, line);
      if (!beside.batch) return false;
      beside.open_end = open;
      if (open && !beside.of_all_gpus) beside.batch.reset();
      continue;
    }
    if (key.find(" mem usage/free/total/") != std::string_view::npos &&
        !read_device_memory(value, line, step, beside, taken))
      return false;
    // "iteration time: 270.125 s samples/sec: 3.8": two numbers between two bars.
    if (key == "iteration time" && !read_before(value, line, step, taken)) return false;
    beside.of_all_gpus |= key == "tokens_per_sec";
    for (std::size_t i = 0; i < std::size(known_fields); ++i) {
      const Known& known = known_fields[(expected + i) % std::size(known_fields)];
      if (known.key != key) continue;
      // "1234.5/1230.2": of this iteration, and the mean so far.
      step[known.field] = prefixed_number(value, known.kind, known.unit, line, taken, known.field);
      if (!step[known.field]) return false;
      beside.open_end = open;
      if (open && !beside.of_all_gpus) step[known.field].reset();
      expected = (expected + i + 1) % std::size(known_fields);
      break;
    }
  }
  return true;
}

}  // namespace

bool is_name(std::string_view key) {
  return is_batch(key) ||
         std::find(std::begin(other_names), std::end(other_names), key) != std::end(other_names) ||
         std::any_of(std::begin(known_fields), std::end(known_fields),
                     [&](const Known& known) { return known.key == key; });
}

bool read_before(std::string_view text, std::int64_t line, Step& step, TakenNumbers* taken) {
  const std::string_view rest = behind(text, "samples/sec:");
  if (!rest.data()) return true;
  step[Field::sequences_per_second] =
      prefixed_number(rest, Kind::measured, 1, line, taken, Field::sequences_per_second);
  return step[Field::sequences_per_second].has_value();
}

bool read_numbers(std::string_view text, std::int64_t line, Step& step, Beside& beside, TakenNumbers* taken) {
  const std::size_t bar = text.find('|');
  Scan scan(text.substr(0, bar), line, taken);
  scan.take(step, Field::step, "", Kind::counted);
  scan.take(step, Field::planned_steps, "/", Kind::counted);
  return !scan.bad() && read_parts(text.substr(bar + 1), line, step, beside, taken) && step[Field::seconds];
}

}  // namespace assay::spec::audit::megatron
