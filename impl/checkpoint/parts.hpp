#pragma once
// The three tensor files of a checkpoint, and the flat buffers that they hold
// (spec/checkpoint/checkpoint.md).
#include <ATen/core/Tensor.h>

#include <string>

#include "impl/params/parameter_buffers.hpp"
#include "spec/checkpoint/model_file.hpp"

namespace assay::impl::checkpoint {

struct Part {
  const char* file;
  at::Tensor ParameterBuffers::*buffer;
};

inline constexpr Part parts[] = {{"master.safetensors", &ParameterBuffers::master},
                                 {"moment1.safetensors", &ParameterBuffers::moment1},
                                 {"moment2.safetensors", &ParameterBuffers::moment2}};

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

/// Type of a parameter: a router's bias is fp32 beside master weights of bf16.
inline std::string dtype_name(const ParameterBuffers& buffers, const spec::Parameter& parameter) {
  const std::string of_learned = dtype_name(buffers);
  return parameter.learned() || of_learned != "BF16" ? of_learned : "F32";
}

inline spec::safetensors::Header header_of(const Part& part, const ParameterBuffers& buffers) {
  return spec::header_of(buffers.model, [&](const spec::Parameter& parameter) {
    return holds(part, parameter) ? dtype_name(buffers, parameter) : std::string();
  });
}

}  // namespace assay::impl::checkpoint
