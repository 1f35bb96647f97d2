#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace assay::impl {

/// The documents of a micro-batch of B sequences of T tokens, none seeing another. All that attention must
/// know of them on the host is here, so that nothing waits for the device.
struct Documents {
  at::Tensor numbers;  ///< [B, T] int32, never decreasing along T; undefined: one document per sequence
  /// [places + 1] int32, first tokens in [0, B T] (impl/data/document_offsets.hpp); undefined: only plain
  /// products can tell documents apart on a GPU.
  at::Tensor offsets;
  std::int64_t visible_pairs = 0;  ///< of all documents, for the count of FLOPs where `offsets` are used

  Documents(at::Tensor of = {}, at::Tensor first_tokens = {}, std::int64_t pairs = 0)  // NOLINT: implicit
      : numbers(std::move(of)), offsets(std::move(first_tokens)), visible_pairs(pairs) {}
  bool defined() const { return numbers.defined(); }
};

}  // namespace assay::impl
