#pragma once
// The algorithms that a run on a GPU computes by, in its folder: a resume computes by the same, whatever was
// tuned on the machine in between.
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "impl/comm/communicator.hpp"
#include "impl/ops/gemm/gemm_pins.hpp"

namespace assay::impl::run {

struct Algorithms {
  std::string gpu;               ///< model
  std::string libraries;         ///< "cuBLASLt 130100, cuDNN 91900, libtorch 2.11.0"
  std::string attention;         ///< "cudnn"
  cuda::AlgorithmTexts gemms{};  ///< of large GEMMs
  bool operator==(const Algorithms&) const = default;
};

/// {"gpu": ..., "libraries": ..., "attention": ..., "gemms": {...}}, one member a line.
std::string to_json(const Algorithms& algorithms);
/// Errors: UserError(bad_data) that starts with `origin`.
Algorithms algorithms_of(const std::string& json, const std::string& origin);

/// This machine's, with the GEMMs that are tuned on it. Domain: a GPU.
Algorithms algorithms_here(at::Device device, const std::string& attention);

/// Reads and writes RUN/algorithms.json. Rank 0's algorithms are every rank's.
class PinnedAlgorithms {
 public:
  static constexpr const char* file_name = "algorithms.json";

  /// `here`: algorithms_here. `pins`: what takes the algorithms.
  PinnedAlgorithms(Algorithms here, cuda::GemmPins& pins, Communicator& communicator);

  /// Before the first GEMM. Gives `pins` what the run of `checkpoint` wrote down (empty: a new run),
  /// and of other GEMMs what is tuned here. Returns why the bits of a resume are not those of a run
  /// without a stop, where that is known: another GPU or library, or nothing was written. Collective.
  std::optional<std::string> begin(const std::string& checkpoint);

  /// Before a checkpoint is saved in `directory`. Writes what every rank has used, where that is more than
  /// the file holds. Returns why it cannot, in which case a later call tries again. Collective.
  std::optional<std::string> keep(const std::string& directory);

 private:
  const Algorithms here_;
  cuda::GemmPins& pins_;
  Communicator& communicator_;
  cuda::AlgorithmTexts kept_;  ///< of the run, by this start or an earlier one
  std::optional<Algorithms> written_;
};

}  // namespace assay::impl::run
