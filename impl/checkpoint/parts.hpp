#pragma once
// The parts of a checkpoint, and the flat buffers that they hold
// (spec/checkpoint/checkpoint.md).
#include <ATen/core/Tensor.h>

#include <string>

#include "impl/checkpoint/manifest.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl::checkpoint {

struct Part {
  const char* name;
  at::Tensor ParameterBuffers::*buffer;
};

inline constexpr auto parts = [] {
  std::array<Part, part_names.size()> all = {};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {part_names[i], state_parts[i]};
  return all;
}();

/// Whether a part holds a parameter: a router's bias, which no gradient moves, has no moments.
inline bool holds(const Part& part, const spec::Parameter& parameter) {
  return parameter.learned() || part.buffer == &ParameterBuffers::master;
}

/// Type of what is learned in a checkpoint of `buffers`, as safetensors names it.
inline std::string dtype_name(const ParameterBuffers& buffers) {
  switch (buffers.master.scalar_type()) {
    case at::kDouble:
      return "F64";
    case at::kBFloat16:
      return "BF16";
    default:
      return "F32";
  }
}

/// ATen's name of a type in a file.
inline at::ScalarType scalar_type_of(const std::string& dtype) {
  if (dtype == "F64") return at::kDouble;
  if (dtype == "F16") return at::kHalf;
  return dtype == "BF16" ? at::kBFloat16 : at::kFloat;
}

/// Type of a parameter: a router's bias is fp32 beside master weights of bf16.
inline std::string dtype_name(const ParameterBuffers& buffers, const spec::Parameter& parameter) {
  const std::string of_learned = dtype_name(buffers);
  return parameter.learned() || of_learned != "BF16" ? of_learned : "F32";
}

}  // namespace assay::impl::checkpoint
