#pragma once
// Which activations of a decoder block a step keeps, and which ones backward recomputes. The tensors that
// each choice keeps: spec/memory/recompute.md.
#include <array>
#include <string_view>

namespace assay::spec {

/// Ordered: each keeps no more activations than the one before, and recomputes no fewer GEMMs.
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
