#pragma once
// Memory that attention takes beside its results: temporaries that are freed when the op returns.
// (spec/plan/plan.md)
#include <cstdint>
#include <vector>

#include "spec/flops/executed.hpp"
#include "spec/memory/setting.hpp"

namespace assay::spec::memory {

/// A micro-batch's attention, as its backend is chosen (spec/ops/attention/attention_choice.hpp).
attention::Case attention_case(const Setting& setting);
/// What computes it. Errors: UserError(usage) where setting.attention does not.
AttentionBackend attention_backend(const Setting& setting);

/// Tile of the CPU's loops (impl/ops/attention/attention_cpu.cpp): query tokens worked on together.
inline constexpr std::int64_t loop_tile_rows = 12;
/// How it covers pairs of tokens. (spec/flops/executed.md)
spec::AttentionKernel executed_kernel(const Setting& setting);

struct Scratch {
  const char* name;
  std::vector<std::int64_t> shape;
  std::int64_t element_bytes;
};

/// Of B sequences of T tokens.
std::vector<Scratch> attention_forward_scratch(const Setting& setting, std::int64_t B, std::int64_t T);
std::vector<Scratch> attention_backward_scratch(const Setting& setting, std::int64_t B, std::int64_t T);

}  // namespace assay::spec::memory
