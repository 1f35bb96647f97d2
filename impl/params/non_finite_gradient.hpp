#pragma once
#include <string>

#include <ATen/core/Tensor.h>

#include "spec/model/inventory.hpp"

namespace assay::impl {

/// Finds a NaN or an infinity in the gradients of this rank, before a sum over ranks spreads it to all. That
/// costs a pass over every gradient and on a GPU a wait, so it is done only when a step that failed is run
/// again.
class NonFiniteGradient {
 public:
  /// `inventory` must outlive this.
  explicit NonFiniteGradient(const spec::Inventory& inventory) : inventory_(inventory) {}

  /// Gradients are searched from here on.
  void begin();
  /// Nothing without `begin`. `gradient`: of the whole block, this rank's own, not yet reduced.
  void search(std::int64_t block, const at::Tensor& gradient);
  /// Ends the search: the first parameter whose gradient was not finite; empty if none was.
  std::string end();

 private:
  const spec::Inventory& inventory_;
  bool searches_ = false;
  std::string found_;
};

}  // namespace assay::impl
