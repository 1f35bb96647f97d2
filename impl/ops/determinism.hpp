#pragma once
// Whether libraries may choose what adds in any order, or another algorithm from one run to the next.

namespace assay::impl {

/// `on`: from here on the same calls give the same bits on the same machine, in every process. On a GPU fused
/// attention's backward adds in a fixed order, and a GEMM has one algorithm from its first call on
/// (impl/ops/gemm/gemm_pins.hpp) instead of one that is found by timing. Everything else is so anyway, the
/// CPU's work included.
void set_deterministic(bool on);
bool deterministic();

}  // namespace assay::impl
