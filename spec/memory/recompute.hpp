#pragma once
// What a step keeps of a decoder block's forward and what backward computes again. What each choice keeps,
// tensor by tensor: spec/memory/recompute.md.
#include <array>
#include <string_view>

namespace assay::spec {

/// Ordered: each keeps no more, and runs no fewer GEMMs again, than the one before.
enum class Recompute {
  none,          ///< everything is kept
  norms_swiglu,  ///< values of norms and SwiGLU: cheap passes over memory, no GEMM
  attention,     ///< ... and attention's forward
  block          ///< the block's whole forward but for its last GEMM, from its input
};

inline constexpr std::array all_recomputes = {Recompute::none, Recompute::norms_swiglu, Recompute::attention,
                                              Recompute::block};

std::string_view to_string(Recompute recompute);  ///< "norms_swiglu"

}  // namespace assay::spec
