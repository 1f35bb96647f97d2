#pragma once
// The fastest algorithm of a large matrix product, found by timing the library's candidates once and kept on
// disk.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::impl::cuda {

/// Products of fewer operations take the library's first choice: a search would cost more than it saves.
inline constexpr double least_searched_flops = 2e10;

/// Runs the product once with an algorithm, its result to a place that is not read. False: it does not run.
using Run = std::function<bool(const cublasLtMatmulAlgo_t&)>;

/// The candidate that ran fastest, six runs each after the GPU has been kept busy for a moment; the first one
/// where none is at least 1 % faster than it. The choice is kept under `key` in ~/.cache/assay/gemm (or
/// XDG_CACHE_HOME), one file for each GPU model and library version, so that later processes use the same
/// algorithm and give the same bits. Where that folder cannot be written the search is made anew by every
/// process. `candidates` is not empty; `valid` says whether an algorithm read from disk can run this product.
cublasLtMatmulAlgo_t fastest(const std::string& key, const std::vector<cublasLtMatmulAlgo_t>& candidates,
                             const Run& run, const std::function<bool(const cublasLtMatmulAlgo_t&)>& valid,
                             cudaStream_t stream);

/// One line for every search made since the last call: the product, the candidates, the gain.
std::vector<std::string> new_searches();

/// Text of an algorithm (64 bytes in hexadecimal), and back; nothing where the text is not one.
std::string to_text(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> from_text(const std::string& text);

}  // namespace assay::impl::cuda
