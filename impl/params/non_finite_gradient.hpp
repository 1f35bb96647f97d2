#pragma once
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "spec/model/inventory.hpp"

namespace assay::impl {

/// Checks gradients before a sum over ranks spreads a NaN or an infinity of one rank to all, so that the rank
/// at fault is still known. On a GPU nothing waits for the result before `name` is called, and it names only
/// the block: by then the gradient has been overwritten by the sum.
class NonFiniteGradient {
 public:
  /// `inventory` must outlive this.
  explicit NonFiniteGradient(const spec::Inventory& inventory) : inventory_(inventory) {}

  void clear();
  /// `gradient`: of the whole block, this rank's own.
  void look(std::int64_t block, const at::Tensor& gradient);
  /// The first parameter, or block, that was not finite since `clear`; empty if none was.
  std::string name() const;

 private:
  const spec::Inventory& inventory_;
  std::string found_;
  std::vector<std::pair<std::int64_t, at::Tensor>> sums_;  ///< of squares, on the GPU
};

}  // namespace assay::impl
