#pragma once
// Which algorithm computes a large GEMM while `deterministic()`: one whose bits do not
// depend on timing, and that a later process can be given again. Keys and algorithms are texts
// (impl/ops/gemm/cuda_gemm.cpp, cuda_gemm_search.hpp), so that the choice needs no GPU.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace assay::impl::cuda {

using AlgorithmTexts = std::map<std::string, std::string>;  ///< algorithm by GEMM

class GemmPins {
 public:
  explicit GemmPins(AlgorithmTexts known) : known_(std::move(known)) {}

  /// Of the GEMMs of `known` these algorithms are used from here on. What was used before is forgotten.
  void give(AlgorithmTexts known);
  /// Counts calls of `give`: an algorithm that was asked for before the last one is out of date.
  std::uint64_t generation() const;
  /// Whether an algorithm of `gemm` was given.
  bool knows(const std::string& gemm) const;
  /// The known algorithm of `gemm` where it `runs`, else `first_choice`, the library's.
  std::string of(const std::string& gemm, const std::string& first_choice,
                 const std::function<bool(const std::string&)>& runs);
  /// All answers of `of` since `give`.
  AlgorithmTexts used() const;

 private:
  mutable std::mutex mutex_;
  AlgorithmTexts known_, used_;
  std::uint64_t generation_ = 0;
};

/// Those of this process' GEMMs. Until some are given: what was tuned or found on this machine
/// (Search::all_kept). Needs a GPU.
GemmPins& gemm_pins();

}  // namespace assay::impl::cuda
