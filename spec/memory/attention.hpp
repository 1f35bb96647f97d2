#pragma once
// Memory that attention takes beside its results: temporaries that are freed when the op returns.
// (spec/memory/plan.md)
#include <cstdint>
#include <string>
#include <vector>

#include "spec/flops/executed.hpp"
#include "spec/memory/setting.hpp"

namespace assay::spec::memory {

/// The code that computes attention: loops of our own on a CPU, plain GEMMs (`math`), cuDNN, or
/// FlashAttention, which alone takes documents and windows.
enum class AttentionKernel { loops, math, cudnn, flash };
AttentionKernel attention_kernel(const Setting& setting);
std::string to_string(AttentionKernel kernel);  ///< "loops"

/// Tile of the CPU's loops (impl/ops/attention/attention_cpu.cpp): query tokens worked on together.
inline constexpr std::int64_t loop_tile_rows = 12;
/// How that kernel covers pairs of tokens. (spec/flops/executed.md)
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
