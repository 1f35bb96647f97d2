#pragma once
// For which GPUs our kernels were compiled.
#include <string>
#include <vector>

namespace assay::impl::run {

/// One entry of ASSAY_CUDA_ARCHITECTURES (cmake/AssayImpl.cmake).
struct Architecture {
  int capability = 0;     ///< 90 for compute capability 9.0
  bool specific = false;  ///< "90a": runs on exactly that capability
  bool machine = false;   ///< holds machine code, runs on the same major and this or a higher minor
  bool ptx = false;       ///< holds PTX, which the driver compiles for this capability and any newer one
  bool operator==(const Architecture&) const = default;
};

/// Reads CMake's form, "80-real;90a-real;100-virtual", or with blanks; without a suffix both machine code and
/// PTX. Words that are none are left out.
std::vector<Architecture> read_architectures(const std::string& list);

/// Of this build.
const std::vector<Architecture>& compiled_architectures();

/// Whether a GPU of `capability` (90 for 9.0) can run the code.
bool runs_on(const std::vector<Architecture>& architectures, int capability);

/// "sm_80, sm_90a, PTX compute_100".
std::string describe(const std::vector<Architecture>& architectures);

}  // namespace assay::impl::run
