#include "spec/audit/readers/llm_tii_header.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include "spec/audit/readers/scan.hpp"
#include "spec/audit/readers/setting_names.hpp"

namespace assay::spec::audit::llm_tii {
namespace {

constexpr SettingName header_keys[] = {
    {"Total parameters", Setting::parameters, Kind::counted, 1},
    {"Non-embedding params", Setting::parameters_nonembedding, Kind::counted, 1},
    {"Layers", Setting::layers, Kind::counted, 1},
    {"Hidden size", Setting::width, Kind::counted, 1},
    {"Attention heads", Setting::heads, Kind::counted, 1},
    {"Sequence length", Setting::sequence_length, Kind::counted, 1},
    {"Vocabulary size", Setting::vocab, Kind::counted, 1},
    {"Batch size (micro)", Setting::micro, Kind::counted, 1},
    {"Gradient accum steps", Setting::accumulation, Kind::counted, 1},
    {"Effective batch size", Setting::sequences, Kind::counted, 1},
    {"Tokens per iteration", Setting::tokens_per_step, Kind::counted, 1},
    {"Max iterations", Setting::max_steps, Kind::counted, 1},
    {"Learning rate", Setting::learning_rate, Kind::counted, 1},
    {"LR warmup iters", Setting::warmup_steps, Kind::counted, 1},
    {"LR decay iters", Setting::decay_steps, Kind::counted, 1},
    {"GPUs", Setting::gpus, Kind::counted, 1},
    {"Memory per GPU", Setting::gpu_memory, Kind::measured, 1e9},
    {"Hardware peak", Setting::peak_flops, Kind::measured, 1e12},
    {"FLOPs per token", Setting::flops_per_token, Kind::measured, 1e9},
    {"Expected tokens/s @50% MFU", Setting::expected_tokens_per_second_half_mfu, Kind::measured, 1},
};

/// "18L-18H-2304D-RoPE-RMS-SwiGLU-PreNorm": layers, heads, width.
void read_architecture(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  constexpr std::pair<char, Setting> parts[] = {
      {'L', Setting::layers}, {'H', Setting::heads}, {'D', Setting::width}};
  std::array<std::optional<Printed>, 3> numbers;
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t length = 0;
    while (length < text.size() && std::isdigit(static_cast<unsigned char>(text[length]))) ++length;
    if (length == 0 || length >= text.size() || text[length] != parts[i].first) return;
    numbers[i] = parse_printed(text.substr(0, length), Kind::counted, 1, line);
    text.remove_prefix(length + 1);
    if (i < 2 && (text.empty() || text[0] != '-')) return;
    if (i < 2) text.remove_prefix(1);
  }
  for (std::size_t i = 0; i < 3; ++i) builder.setting(parts[i].second, numbers[i]);
}

struct HeaderLine {
  std::string_view key, value;
};

/// Without a key where the line is none.
HeaderLine header_line(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  std::string_view key = trimmed(text.substr(0, colon));
  // "├─ Layers": the tree's branches, in whatever encoding they arrive.
  while (!key.empty() && !std::isalpha(static_cast<unsigned char>(key.front()))) key.remove_prefix(1);
  if (key.size() > 40) return {};
  return {key, trimmed(text.substr(colon + 1))};
}

const SettingName* known_of(std::string_view key) {
  const auto found = std::find_if(std::begin(header_keys), std::end(header_keys),
                                  [&](const SettingName& known) { return key.ends_with(known.name); });
  return found == std::end(header_keys) ? nullptr : found;
}

bool names_a_device(const HeaderLine& line) { return line.key.ends_with("Device") && line.value.size() > 3; }

}  // namespace

std::vector<std::string_view> header_words() {
  std::vector<std::string_view> out = {"Device", "Precision", "Parallelism", "Architecture Name"};
  for (const SettingName& known : header_keys) out.push_back(known.name);
  return out;
}

bool begins_a_header(std::string_view text) {
  const HeaderLine line = header_line(text);
  return known_of(line.key) || names_a_device(line);
}

void read_header(std::string_view text, std::int64_t number, RecordBuilder& builder) {
  const HeaderLine line = header_line(text);
  const auto& [key, value] = line;
  if (const SettingName* known = known_of(key)) {
    const auto printed = parse_printed(number_token(value), known->kind, known->unit, number);
    if (!printed) return builder.unread(text);
    return builder.setting(known->setting, printed);
  }
  if (names_a_device(line)) builder.name(&RunRecord::gpu, value);
  if (key.ends_with("Precision")) builder.name(&RunRecord::dtype, value == "bfloat16" ? "bf16" : value);
  if (key.ends_with("Parallelism")) builder.name(&RunRecord::parallelism, value);
  if (key.ends_with("Architecture Name")) read_architecture(value, number, builder);
}

}  // namespace assay::spec::audit::llm_tii
