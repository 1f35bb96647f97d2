#pragma once
// Whether libraries may choose what adds in any order, or another algorithm from one run to the next.

namespace assay::impl {

/// `on`: from here on the same calls give the same bits on the same machine, in every process. On a GPU fused
/// attention's backward adds in a fixed order, and of the algorithms of a GEMM only those are
/// timed that give the same bits (impl/ops/gemm/gemm_pins.hpp). Everything else is so anyway, the
/// CPU's work included.
void set_deterministic(bool on);
bool deterministic();

}  // namespace assay::impl
