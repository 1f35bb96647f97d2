#include "impl/ops/gemm/cuda_gemm_search.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "impl/machine/output_folder.hpp"
#include "impl/ops/cuda_launch.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"

namespace assay::impl::cuda {

namespace {

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

/// Empty where there is none yet.
std::string text_of(const std::filesystem::path& path) try {
  return spec::read_file(path, spec::file_limits::algorithms);
} catch (const spec::FileFault&) {
  return "";
}

/// The choices of this GPU model and library version: lines of a key, a blank and an algorithm.
class Choices {
 public:
  Choices() {
    const std::filesystem::path folder = cache_folder();
    if (folder.empty()) return;
    path_ = folder / file_name();
    std::istringstream file(text_of(path_));
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
  const std::map<std::string, cublasLtMatmulAlgo_t>& all() const { return table_; }
  /// Writes the whole file beside the old one and renames it: a reader sees one or the other.
  void keep(const std::string& key, const cublasLtMatmulAlgo_t& algorithm) {
    table_[key] = algorithm;
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(path_.parent_path(), ignored);
    std::string text;
    for (const auto& [each, choice] : table_) text += each + ' ' + to_text(choice) + '\n';
    try {
      replace_file(OutputFolder(path_.parent_path()), path_.filename().string(), text);
    } catch (const UserError&) {
      // Every process searches for itself.
    }
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

Tournament::Tournament(std::size_t candidates) : times_(candidates), in_(candidates) {
  for (std::size_t i = 0; i < candidates; ++i) in_[i] = i;
  if (candidates == 1) winner_ = 0;
}

std::size_t Tournament::next() {
  if (winner_) return *winner_;
  turn_ = turn_ % in_.size();
  return in_[turn_++];
}

void Tournament::add(std::size_t candidate, float milliseconds) {
  times_[candidate].push_back(milliseconds);
  look();
}

void Tournament::drop(std::size_t candidate) {
  if (in_.size() > 1) std::erase(in_, candidate);
  if (in_.size() == 1) winner_ = in_.front();
}

float Tournament::median(std::size_t candidate) const {
  std::vector<float> sorted = times_[candidate];
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

std::size_t Tournament::fastest() const {
  return *std::min_element(in_.begin(), in_.end(),
                           [&](std::size_t a, std::size_t b) { return median(a) < median(b); });
}

void Tournament::look() {
  if (winner_) return;
  std::size_t seen = times_[in_.front()].size();
  for (const std::size_t candidate : in_) seen = std::min(seen, times_[candidate].size());
  if (seen < (looked_ ? last_look : first_look)) return;
  const std::size_t best = fastest();
  if (looked_) {
    winner_ = in_.front() == 0 && median(best) > clearly_faster * median(0) ? 0 : best;
    return;
  }
  looked_ = true;
  std::erase_if(in_,
                [&](std::size_t candidate) { return median(candidate) > clearly_slower * median(best); });
  if (in_.size() == 1) winner_ = in_.front();
}

namespace {
Choices& choices() {
  static Choices all;
  return all;
}

/// "tile 23, cluster 3, swizzling 0, split 1" in cuBLASLt's numbers.
std::string configuration_of(const cublasLtMatmulAlgo_t& algorithm) {
  const auto value = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, auto of_type) {
    std::size_t written = 0;
    cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &of_type, sizeof of_type, &written);
    return std::to_string(of_type);
  };
  return "tile " + value(CUBLASLT_ALGO_CONFIG_TILE_ID, std::uint32_t{}) + ", cluster " +
         value(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, std::uint16_t{}) + ", swizzling " +
         value(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, std::uint32_t{}) + ", split " +
         value(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{});
}
}  // namespace

namespace {
std::atomic<std::int64_t> searching = 0;
}

std::int64_t searching_calls() { return searching; }
void count_searching_call() { ++searching; }

Search::Search(std::string key, std::vector<cublasLtMatmulAlgo_t> candidates)
    : key_(std::move(key)), candidates_(std::move(candidates)), tournament_(candidates_.size()) {}

Search::~Search() {
  for (const Call& call : under_way_) {  // those that have not finished are released when they have
    cudaEventDestroy(call.begin);
    cudaEventDestroy(call.end);
  }
}

bool Search::load_is_settled() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point begin = Clock::now();
  return std::chrono::duration<double>(Clock::now() - begin).count() >= settling;
}

std::optional<cublasLtMatmulAlgo_t> Search::kept(const std::string& key) { return choices().find(key); }

std::map<std::string, std::string> Search::all_kept() {
  std::map<std::string, std::string> all;
  for (const auto& [key, algorithm] : choices().all()) all[key] = to_text(algorithm);
  return all;
}

std::string Search::keep(const std::string& key, const cublasLtMatmulAlgo_t& winner,
                         const std::vector<std::pair<double, std::size_t>>& times) {
  choices().keep(key, winner);
  std::string text = key + ": " + configuration_of(winner) + ";";
  for (const auto& [time, candidate] : times) {
    char part[40];
    std::snprintf(part, sizeof part, " #%zu %.3f", candidate + 1, time);
    text += part;
  }
  return text + " ms";
}

const cublasLtMatmulAlgo_t& Search::begin(cudaStream_t stream) {
  Call call{tournament_.next(), nullptr, nullptr};
  ASSAY_CUDA_CHECK(cudaEventCreate(&call.begin));
  ASSAY_CUDA_CHECK(cudaEventCreate(&call.end));
  ASSAY_CUDA_CHECK(cudaEventRecord(call.begin, stream));
  under_way_.push_back(call);
  return candidates_[call.candidate];
}

void Search::end(cudaStream_t stream) { ASSAY_CUDA_CHECK(cudaEventRecord(under_way_.back().end, stream)); }

void Search::failed() {
  tournament_.drop(under_way_.back().candidate);
  cudaEventDestroy(under_way_.back().begin);
  cudaEventDestroy(under_way_.back().end);
  under_way_.pop_back();
}

std::optional<cublasLtMatmulAlgo_t> Search::result() {
  while (!under_way_.empty()) {
    const Call call = under_way_.front();
    const cudaError_t status = cudaEventQuery(call.end);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // it is no error of the next launch
      break;
    }
    ASSAY_CUDA_CHECK(status);
    float milliseconds = 0;
    ASSAY_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, call.begin, call.end));
    cudaEventDestroy(call.begin);
    cudaEventDestroy(call.end);
    under_way_.pop_front();
    tournament_.add(call.candidate, milliseconds);
    if (!tournament_.winner()) continue;
    report(*tournament_.winner());
    break;
  }
  if (!tournament_.winner()) return {};
  return candidates_[*tournament_.winner()];
}

void Search::report(std::size_t winner) {
  choices().keep(key_, candidates_[winner]);
  std::string text = key_ + ": " + std::to_string(winner + 1) + " of " + std::to_string(candidates_.size()) +
                     " (" + configuration_of(candidates_[winner]) + ");";
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    char time[20];
    std::snprintf(time, sizeof time, " %.3f", static_cast<double>(tournament_.median(i)));
    text += time;
  }
  lines().push_back(text + " ms");
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
