#pragma once
// The fastest algorithm of a large GEMM, found by timing the library's candidates in the calls that
// the trainer makes anyway, and kept on disk.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::impl::cuda {

/// GEMMs of fewer operations take the library's first choice: nothing is to be gained there.
inline constexpr double least_searched_flops = 2e10;

/// Finds the fastest of several candidates that are used by turns, from their times. Takes no time itself and
/// knows no GPU. Turns make the candidates meet the same load, clock and neighbours.
class Tournament {
 public:
  /// Times of each candidate after which the clearly slower ones leave, and after which the rest is decided.
  static constexpr std::size_t first_look = 3, last_look = 9;
  /// A candidate leaves at the first look when its median is more than this times the least one.
  static constexpr float clearly_slower = 1.04f;
  /// The library's first choice stays unless another candidate's median is less than this times its own.
  static constexpr float clearly_faster = 0.995f;

  /// `candidates` > 0; number 0 is the library's first choice.
  explicit Tournament(std::size_t candidates);

  /// Whose turn it is.
  std::size_t next();
  /// One time [ms] of a candidate. Times of those that have left are not looked at.
  void add(std::size_t candidate, float milliseconds);
  /// The candidate cannot run. The last one left stays.
  void drop(std::size_t candidate);
  /// The fastest, once it is known.
  std::optional<std::size_t> winner() const { return winner_; }
  /// Median of the times of a candidate [ms]; 0 where there are none.
  float median(std::size_t candidate) const;

 private:
  void look();
  std::size_t fastest() const;

  std::vector<std::vector<float>> times_;  ///< of each candidate
  std::vector<std::size_t> in_;            ///< candidates still in, ascending
  std::size_t turn_ = 0;
  bool looked_ = false;
  std::optional<std::size_t> winner_;
};

/// The search for one GEMM's algorithm: a Tournament over the calls of the GEMM, timed by events, so
/// that nothing waits. The winner is kept under `key` in ~/.cache/assay/gemm (or XDG_CACHE_HOME), one file
/// for each GPU model and library version: later processes use it from their first call on. Where that folder
/// cannot be written, every process searches anew.
class Search {
 public:
  Search(std::string key, std::vector<cublasLtMatmulAlgo_t> candidates);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Seconds of work after which a GPU's clock is that of a long run: at first it is cool and below its power
  /// limit, and other algorithms are fastest.
  static constexpr double settling = 2;
  /// Whether the first question lies that far back. Until then there is nothing worth timing.
  static bool load_is_settled();

  /// The algorithm that an earlier process kept for `key`.
  static std::optional<cublasLtMatmulAlgo_t> kept(const std::string& key);
  /// All that earlier processes kept for this GPU model and library version: texts of algorithms by key.
  static std::map<std::string, std::string> all_kept();
  /// Keeps `winner`, and returns a line with the times of the candidates, the winner first.
  static std::string keep(const std::string& key, const cublasLtMatmulAlgo_t& winner,
                          const std::vector<std::pair<double, std::size_t>>& times);

  /// The algorithm of the next call; work given to `stream` from here to `end` is timed as that call's.
  const cublasLtMatmulAlgo_t& begin(cudaStream_t stream);
  void end(cudaStream_t stream);
  /// Instead of `end`: the algorithm did not run, another one will be given.
  void failed();
  /// Takes the times of calls that have finished. The winner, once it is known.
  std::optional<cublasLtMatmulAlgo_t> result();

 private:
  struct Call {
    std::size_t candidate;
    cudaEvent_t begin, end;
  };
  void report(std::size_t winner);

  const std::string key_;
  const std::vector<cublasLtMatmulAlgo_t> candidates_;
  Tournament tournament_;
  std::deque<Call> under_way_;
};

/// Calls of GEMMs so far whose algorithm was not settled: a step that adds none makes the calls of every
/// later one.
std::int64_t searching_calls();
/// Counts one.
void count_searching_call();

/// One line for every search that ended since the last call: the GEMM, the winner and the time of every
/// candidate in those calls, the library's first choice first.
std::vector<std::string> new_searches();

/// Text of an algorithm (64 bytes in hexadecimal), and back; nothing where the text is not one.
std::string to_text(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> from_text(const std::string& text);

}  // namespace assay::impl::cuda
