#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace assay::impl {

/// The documents of a micro-batch of B sequences of T tokens, none seeing another. All that attention must
/// know of them on the host is here, so that nothing waits for the device.
struct Documents {
  at::Tensor numbers;  ///< [B, T] int32, never decreasing along T; undefined: one document per sequence
  /// [places + 1] int32, first tokens in [0, B T] (impl/data/document_offsets.hpp); undefined: only plain
  /// products can tell documents apart on a GPU.
  at::Tensor offsets;
  std::vector<std::int32_t> on_host;  ///< the same offsets, for the count of FLOPs

  Documents(at::Tensor of = {}, at::Tensor first_tokens = {},  // NOLINT: implicit
            std::vector<std::int32_t> offsets_on_host = {})
      : numbers(std::move(of)), offsets(std::move(first_tokens)), on_host(std::move(offsets_on_host)) {}
  bool defined() const { return numbers.defined(); }
};

}  // namespace assay::impl
