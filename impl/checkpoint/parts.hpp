#pragma once
// The three tensor files of a checkpoint, and the flat buffers that they hold
// (spec/checkpoint/checkpoint.md).
#include <ATen/core/Tensor.h>

#include <string>

#include "impl/params/parameter_buffers.hpp"

namespace assay::impl::checkpoint {

struct Part {
  const char* file;
  at::Tensor ParameterBuffers::*buffer;
};

inline constexpr Part parts[] = {{"master.safetensors", &ParameterBuffers::master},
                                 {"moment1.safetensors", &ParameterBuffers::moment1},
                                 {"moment2.safetensors", &ParameterBuffers::moment2}};

/// Type of every tensor of a checkpoint of `buffers`, as safetensors names it.
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

}  // namespace assay::impl::checkpoint
