#pragma once
// Which activations of a decoder block a step keeps, and which ones backward recomputes. The tensors that
// each choice keeps: spec/model/recompute.md.
#include <array>
#include <string_view>
#include <vector>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// Ordered: each keeps no more activations than the one before, and recomputes no fewer GEMMs.
enum class Recompute {
  none,          ///< everything is kept
  norms_swiglu,  ///< values of norms and SwiGLU: cheap passes over memory, no GEMM
  mla_up,        ///< ... and q, k and v of latent attention, from their compressed form
  attention,     ///< ... and attention's forward
  block          ///< the block's whole forward but for its last GEMM, from its input
};

inline constexpr std::array all_recomputes = {Recompute::none, Recompute::norms_swiglu, Recompute::mla_up,
                                              Recompute::attention, Recompute::block};

std::string_view to_string(Recompute recompute);  ///< "norms_swiglu"

/// Those that a model tells apart, in their order: `mla_up` needs latent attention, and is norms_swiglu
/// without.
std::vector<Recompute> recomputes_of(const ModelSpec& model);

}  // namespace assay::spec
