#pragma once
// Which backend computes attention of a shape on a GPU: one choice for both passes, made before either runs.
// What the libraries take is asked by the caller, so that the choice itself needs no GPU.
#include <c10/core/ScalarType.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::impl::attention {

/// In the order in which they are asked.
enum class Backend { cudnn, flash, math };
std::string name(Backend backend);

/// What a choice depends on.
struct Shape {
  at::ScalarType type;
  std::int64_t B, T, H, K, E;
  std::int64_t W = 0;   ///< entries of a value head where they are not E, else 0
  bool documents;       ///< several in a sequence; a sequence of one token has nothing to mask
  bool offsets;         ///< of the documents
  std::int64_t window;  ///< that leaves something out, else 0
  std::optional<Backend> forced;
  bool fixed_order;  ///< of backward's sums
  auto operator<=>(const Shape&) const = default;
};

/// "attention of [24, 2048, 18 + 2 x 18, 128] BFloat16"
std::string describe(const Shape& shape);

struct Choice {
  Backend backend;
  std::vector<std::string> reasons;  ///< why not those before it, one each
};

/// Why a backend does not compute forward and backward of the shape; empty where it does.
using Refusal = std::function<std::string(Backend)>;

/// The first backend that takes both passes, or the forced one. A backend that is known not to take the shape
/// is not asked. Errors: UserError(usage) with the reason where the forced one refuses.
Choice choose(const Shape& shape, const Refusal& refusal);

}  // namespace assay::impl::attention
