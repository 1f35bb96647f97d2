#pragma once
// What one rank writes of a state: slices of its buffers, or copies of them on the host.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "impl/checkpoint/manifest.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/params/slices.hpp"

namespace assay::impl::checkpoint {

/// Memory of the host for copies of a state, page-locked beside a GPU; kept from one save to the next.
class HostMemory {
 public:
  /// Makes room for `bytes`, in memory that is there and not only promised.
  void reserve(std::int64_t bytes, at::Device from);
  const at::Tensor& bytes() const { return bytes_; }

 private:
  at::Tensor bytes_;
};

class Snapshot {
 public:
  /// Views of the buffers, which stay as they are until it is written or copied.
  Snapshot(const ParameterBuffers& buffers, const Writer& writer);

  std::int64_t bytes() const;  ///< of the host memory for a copy [B]
  /// Copies everything there; complete on return. From here on the buffers may change, and `memory` may not.
  void copy_to(HostMemory& memory);

  /// Writes a new safetensors file of all slices, durable on return. `piece` is called before each slice.
  /// Errors: UserError(io); UserError(non_finite) checkpoint_c5 naming the parameter where a value is NaN or
  /// infinite.
  FileEntry write(const OutputFolder& folder, const std::string& name,
                  const std::function<void()>& piece) const;

  /// Parameters of the model with their types.
  std::vector<ParameterEntry> parameters() const { return parameters_; }

 private:
  struct Piece {
    const char* part;
    HeldSlice held;
  };
  std::vector<Piece> pieces_;
  std::vector<ParameterEntry> parameters_;
};

}  // namespace assay::impl::checkpoint
