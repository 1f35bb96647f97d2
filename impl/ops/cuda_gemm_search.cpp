#include "impl/ops/cuda_gemm_search.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::cuda {

namespace {

constexpr int timed_runs = 6;
/// Run before the first timing [ms]: a GPU at its power limit is what a step meets, and slower than one at
/// rest.
constexpr float warm_up = 40;

/// Milliseconds of one run, or nothing where the algorithm does not run.
std::optional<float> time_of(const Run& run, const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream) {
  if (!run(algorithm)) return {};
  cudaEvent_t begin, end;
  ASSAY_CUDA_CHECK(cudaEventCreate(&begin));
  ASSAY_CUDA_CHECK(cudaEventCreate(&end));
  ASSAY_CUDA_CHECK(cudaEventRecord(begin, stream));
  for (int i = 0; i < timed_runs; ++i) run(algorithm);
  ASSAY_CUDA_CHECK(cudaEventRecord(end, stream));
  ASSAY_CUDA_CHECK(cudaEventSynchronize(end));
  float milliseconds = 0;
  ASSAY_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds / timed_runs;
}

/// "NVIDIA-H200-130100.txt"
std::string file_name() {
  int device = 0;
  cudaDeviceProp properties;
  ASSAY_CUDA_CHECK(cudaGetDevice(&device));
  ASSAY_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  std::string name = properties.name;
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '-';
  return name + "-" + std::to_string(cublasLtGetVersion()) + ".txt";
}

std::filesystem::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "assay" / "gemm";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "assay" / "gemm";
  return {};
}

/// The choices of this GPU model and library version: lines of a key, a blank and an algorithm.
class Choices {
 public:
  Choices() {
    const std::filesystem::path folder = cache_folder();
    if (folder.empty()) return;
    path_ = folder / file_name();
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      const std::size_t blank = line.find(' ');
      if (blank == std::string::npos) continue;
      if (const auto algorithm = from_text(line.substr(blank + 1)))
        table_[line.substr(0, blank)] = *algorithm;
    }
  }
  std::optional<cublasLtMatmulAlgo_t> find(const std::string& key) const {
    const auto found = table_.find(key);
    return found == table_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Writes the whole file beside the old one and renames it: a reader sees one or the other.
  void keep(const std::string& key, const cublasLtMatmulAlgo_t& algorithm) {
    table_[key] = algorithm;
    if (path_.empty()) return;
    std::error_code ignored;  // a folder that cannot be written: every process searches for itself
    std::filesystem::create_directories(path_.parent_path(), ignored);
    std::filesystem::path fresh = path_;
    fresh += "." + std::to_string(getpid());
    {
      std::ofstream file(fresh);
      for (const auto& [each, choice] : table_) file << each << ' ' << to_text(choice) << '\n';
      if (!file.flush()) return;
    }
    std::filesystem::rename(fresh, path_, ignored);
  }

 private:
  std::filesystem::path path_;
  std::map<std::string, cublasLtMatmulAlgo_t> table_;
};

std::vector<std::string>& lines() {
  static std::vector<std::string> all;
  return all;
}

}  // namespace

cublasLtMatmulAlgo_t fastest(const std::string& key, const std::vector<cublasLtMatmulAlgo_t>& candidates,
                             const Run& run, const std::function<bool(const cublasLtMatmulAlgo_t&)>& valid,
                             cudaStream_t stream) {
  static Choices choices;
  if (const auto kept = choices.find(key); kept && valid(*kept)) return *kept;
  for (float spent = 0; spent < warm_up;) {
    const std::optional<float> time = time_of(run, candidates[0], stream);
    if (!time) break;
    spent += timed_runs * *time + 0.1f;
  }
  std::size_t best = 0;
  std::optional<float> first, least;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::optional<float> time = time_of(run, candidates[i], stream);
    if (i == 0) first = time;
    if (time && (!least || *time < *least)) least = time, best = i;
  }
  if (first && least && *least > 0.99f * *first) best = 0;
  choices.keep(key, candidates[best]);
  char text[200];
  std::snprintf(text, sizeof text, "%s: %zu of %zu, %.3f ms, first choice %.3f ms", key.c_str(), best + 1,
                candidates.size(), least.value_or(0), first.value_or(0));
  lines().push_back(text);
  return candidates[best];
}

std::vector<std::string> new_searches() { return std::exchange(lines(), {}); }

std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

std::optional<cublasLtMatmulAlgo_t> from_text(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm;
  constexpr std::size_t digits = 16;
  if (text.size() != std::size(algorithm.data) * digits) return {};
  if (text.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = std::stoull(text.substr(i * digits, digits), nullptr, 16);
  return algorithm;
}

}  // namespace assay::impl::cuda
