#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/documents.hpp"

namespace assay::impl {

/// One micro-batch on the device. N = B T.
struct TokenBatch {
  std::int64_t B = 0, T = 0;
  at::Tensor inputs;        ///< [N] int64
  at::Tensor targets;       ///< [N] int64, -100 ignored
  at::Tensor sources = {};  ///< [B] int64, of a mixture the source of each sequence; undefined: one source
  at::Tensor positions;     ///< [B, T] int32, restarting with every document; undefined: 0..T-1
  Documents documents;      ///< undefined: one document per sequence
};

}  // namespace assay::impl
