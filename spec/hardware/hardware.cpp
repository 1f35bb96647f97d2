#include "spec/hardware/hardware.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {
namespace {

constexpr std::string_view hardware_folder = "spec/hardware/", hardware_ending = ".toml";
constexpr std::size_t longest_name = 80;  // bytes; drivers print fewer than 64

constexpr std::array<std::pair<std::string_view, Precision>, 19> precision_words = {{
    {"fp64", Precision::fp64},
    {"fp64_tensor", Precision::fp64_tensor},
    {"fp32", Precision::fp32},
    {"tf32", Precision::tf32},
    {"bf16", Precision::bf16},
    {"fp16", Precision::fp16},
    {"fp16_accumulate_fp16", Precision::fp16_accumulate_fp16},
    {"fp8", Precision::fp8},
    {"fp8_accumulate_fp16", Precision::fp8_accumulate_fp16},
    {"fp4", Precision::fp4},
    // As trainers write it.
    {"bfloat16", Precision::bf16},
    {"float16", Precision::fp16},
    {"half", Precision::fp16},
    {"float32", Precision::fp32},
    {"float64", Precision::fp64},
    {"double", Precision::fp64},
    {"float8", Precision::fp8},
    {"mxfp8", Precision::fp8},
    {"nvfp4", Precision::fp4},
}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The part of a name that distinguishes GPUs: lower case, no separators, no vendor's words at its front.
std::string key_of(std::string_view name) {
  std::string key;
  for (char c : name)
    if (c != ' ' && c != '-' && c != '_' && c != '\t') key += lower(c);
  for (bool again = true; again;) {
    again = false;
    for (std::string_view word : {"nvidia", "geforce", "tesla", "amd", "instinct"})
      if (key.size() > word.size() && std::string_view(key).substr(0, word.size()) == word) {
        key.erase(0, word.size());
        again = true;
      }
  }
  return key;
}

/// Without the "VF" of a virtual machine's view of an Instinct GPU, where that is what the key ends in.
std::string_view without_virtual_function(std::string_view key) {
  return key.ends_with("vf") ? key.substr(0, key.size() - 2) : key;
}

/// The GPUs of each key, built once: every line of a log may name a GPU.
struct Named {
  const Gpu* gpu = nullptr;
  std::vector<const Gpu*> candidates;  ///< that share the name
};
const std::map<std::string, Named>& gpus_by_key() {
  static const std::map<std::string, Named> all = [] {
    std::map<std::string, Named> out;
    for (const Gpu& gpu : gpus()) {
      const auto own = [&](const std::string& name) {
        Named& named = out[key_of(name)];
        if (!named.gpu) named.gpu = &gpu;
      };
      own(gpu.id);
      for (const std::string& name : gpu.names) own(name);
      for (const std::string& name : gpu.shared_names) {
        std::vector<const Gpu*>& candidates = out[key_of(name)].candidates;
        if (std::find(candidates.begin(), candidates.end(), &gpu) == candidates.end())
          candidates.push_back(&gpu);
      }
    }
    return out;
  }();
  return all;
}

std::vector<std::string> nearest_names(std::string_view printed) {
  std::vector<std::string> known, found;
  for (const Gpu& gpu : gpus()) {
    known.insert(known.end(), gpu.names.begin(), gpu.names.end());
    known.insert(known.end(), gpu.shared_names.begin(), gpu.shared_names.end());
    known.push_back(gpu.id);
  }
  while (found.size() < 3) {
    const auto match = nearest(printed, known);
    if (!match) break;
    found.push_back(*match);
    std::erase(known, *match);
  }
  return found;
}

}  // namespace

const std::vector<Precision>& precisions() {
  static const std::vector<Precision> all = [] {
    std::vector<Precision> out;
    for (std::size_t i = 0; i < 10; ++i) out.push_back(precision_words[i].second);
    return out;
  }();
  return all;
}

std::string_view to_string(Precision precision) {
  return precision_words[static_cast<std::size_t>(precision)].first;  // the first ten are in the enum's order
}

std::optional<Precision> precision_from(std::string_view word) {
  for (const auto& [known, precision] : precision_words)
    if (std::equal(word.begin(), word.end(), known.begin(), known.end(),
                   [](char left, char right) { return lower(left) == right; }))
      return precision;
  return std::nullopt;
}

const Peak* Gpu::peak(Precision precision) const {
  const auto found = peaks.find(precision);
  return found == peaks.end() ? nullptr : &found->second;
}

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> all = [] {
    std::vector<Gpu> out;
    for (const FactFile& file : fact_files()) {
      if (file.path.substr(0, hardware_folder.size()) != hardware_folder) continue;
      Gpu gpu = gpu_from_toml(file.text, std::string(file.path));
      gpu.id = file.path.substr(hardware_folder.size(),
                                file.path.size() - hardware_folder.size() - hardware_ending.size());
      out.push_back(std::move(gpu));
    }
    std::sort(out.begin(), out.end(), [](const Gpu& left, const Gpu& right) { return left.id < right.id; });
    return out;
  }();
  return all;
}

GpuMatch find_gpu(std::string_view printed) {
  GpuMatch match;
  printed = printed.substr(0, longest_name + 1);
  if (printed.size() <= longest_name) {
    const std::string key = key_of(printed);
    auto named = gpus_by_key().find(key);
    if (named == gpus_by_key().end()) {
      named = gpus_by_key().find(std::string(without_virtual_function(key)));
      const bool instinct = named != gpus_by_key().end() && named->second.gpu &&
                            named->second.gpu->architecture.starts_with("cdna");
      if (!instinct) named = gpus_by_key().end();
    }
    if (named != gpus_by_key().end() && named->second.gpu) {
      match.gpu = named->second.gpu;
      return match;
    }
    if (named != gpus_by_key().end()) match.candidates = named->second.candidates;
  }
  if (match.candidates.empty()) match.nearest = nearest_names(printed.substr(0, longest_name));
  return match;
}

std::optional<double> dense_peak(const GpuMatch& match, Precision precision) {
  std::vector<const Gpu*> meant = match.candidates;
  if (match.gpu) meant.push_back(match.gpu);
  std::optional<double> least, most;
  for (const Gpu* gpu : meant) {
    const Peak* peak = gpu->peak(precision);
    if (!peak) return std::nullopt;
    least = std::min(least.value_or(peak->dense), peak->dense);
    most = std::max(most.value_or(peak->dense), peak->dense);
  }
  return least && *most <= *least * 1.01 ? least : std::nullopt;
}

const Gpu& usual_gpu(const GpuMatch& match) {
  const auto rank = [](const Gpu* gpu) {
    return std::pair(gpu->id.find("-sxm") != std::string::npos, gpu->memory ? gpu->memory->value : 0);
  };
  return **std::ranges::max_element(match.candidates, {}, rank);
}

const Gpu& named_gpu(const std::string& name) {
  const GpuMatch match = find_gpu(name);
  if (match.gpu) return *match.gpu;
  std::string list;
  for (const Gpu* gpu : match.candidates) list += (list.empty() ? "" : ", ") + gpu->id;
  if (!list.empty())
    throw UserError(ExitCode::usage, "GPU " + quote(name) + " may be any of " + list + "; name one of them");
  for (const std::string& near : match.nearest) list += (list.empty() ? "" : ", ") + quote(near);
  if (!list.empty()) list = "; nearest: " + list;
  std::string all;
  for (const Gpu& gpu : gpus()) all += (all.empty() ? "" : ", ") + gpu.id;
  throw UserError(ExitCode::usage, "GPU " + quote(name) + " is not known, so it has no peak and no MFU" +
                                       list + "; known: " + all);
}

std::optional<double> most_memory(const Gpu& gpu) {
  if (gpu.memory_mounted) return gpu.memory_mounted->value;
  if (gpu.memory) return gpu.memory->value * 1.005;
  return std::nullopt;
}

}  // namespace assay::spec
