#pragma once
// The matmul FLOPs that a training step really runs, which HFU counts, and what of them the model did not
// need. Formulas and example: spec/flops/executed.md.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "spec/count.hpp"
#include "spec/flops/exact.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/model/recompute.hpp"

namespace assay::spec {

/// Recompute: products of forward that run again for backward's sake.
enum class ExecutedPass { forward, backward, recompute };
constexpr std::size_t executed_passes = 3;
std::string_view to_string(ExecutedPass pass);  ///< "recompute"

/// How attention runs over pairs of tokens.
struct AttentionKernel {
  enum class Kind {
    fused,   ///< a vendor's fused kernel: visible pairs only, as far as its arguments tell
    square,  ///< all T * T pairs, then masked
    tiles    ///< tiles of query tokens against the keys from the first visible one to the tile's last token
  };
  Kind kind = Kind::fused;
  std::int64_t tile_rows = 0;     ///< of tiles: query tokens
  std::int64_t column_block = 0;  ///< of tiles: columns of a product are padded to a multiple of this
};

/// FLOPs of one component in one pass, by what they are good for. [flop]
struct ExecutedCount {
  Count needed;         ///< pairs that see each other, each once
  Count masked_pairs;   ///< computed, then thrown away by the mask
  Count padding;        ///< columns added to fill a register or tile
  Count skipped_pairs;  ///< counted by exact_flops, not run: tokens of other documents
  Count fp8 = 0;        ///< what of executed() ran on FP8 tensor cores
  Count executed() const { return needed + masked_pairs + padding; }
  ExecutedCount& operator+=(const ExecutedCount& other);
};

/// One sequence, or a sum over several. needed + skipped_pairs of forward and of backward is exact_flops.
struct ExecutedFlops {
  std::array<std::array<ExecutedCount, executed_passes>, flop_components> counts;

  const ExecutedCount& at(FlopComponent component, ExecutedPass pass) const {
    return counts[static_cast<std::size_t>(component)][static_cast<std::size_t>(pass)];
  }
  Count executed(ExecutedPass pass) const;  ///< all components
  Count executed() const;                   ///< all passes
  ExecutedFlops& operator+=(const ExecutedFlops& other);
};

/// Forward and backward of one sequence whose documents have these lengths, in order; backward of attention
/// computes the scores again. Experts take exactly the tokens routed to them. Errors: SpecError model_c1.. as
/// `check`; executed_c1 (no document, or one below 1 token), executed_c2 (tile_rows or column_block below 1
/// where the kernel works in tiles).
ExecutedFlops executed_flops(const ModelSpec& model, const std::vector<std::int64_t>& document_lengths,
                             const AttentionKernel& kernel, Recompute recompute = Recompute::norms_swiglu);

/// Attention alone, of `heads` heads whose queries have E and whose values have W entries, on one sequence
/// whose tokens see `window` tokens at most (0: no limit): forward, backward, and the scores that every
/// backward computes again. Errors: executed_c1, executed_c2.
ExecutedFlops executed_attention(const Count& heads, std::int64_t E, std::int64_t W,
                                 const std::vector<std::int64_t>& document_lengths, std::int64_t window,
                                 const AttentionKernel& kernel);

}  // namespace assay::spec
