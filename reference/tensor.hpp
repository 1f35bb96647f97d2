#pragma once
// The reference's tensor: a shape and its elements in row-major order. Storage is an Eigen array, so that
// whole-array arithmetic and norms are Eigen's; ops index it with loops that read like the equation.
#include <Eigen/Core>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "spec/error.hpp"

namespace assay::reference {

using Index = std::int64_t;
using Shape = std::vector<Index>;

/// "[2, 3, 8]"
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

/// S is double, or Counted where FLOPs are counted. Elements start at zero.
/// Errors: SpecError tensor_c1 (negative extent), tensor_c2 (element count does not match), tensor_c3 (index
/// out of range or of the wrong rank: always checked, the reference is allowed to be slow).
template <class S>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Shape shape) : shape_(std::move(shape)) {
    Index count = 1;
    for (Index extent : shape_) {
      require(extent >= 0, "tensor_c1", [&] { return "negative extent in " + to_string(shape_); });
      count *= extent;
    }
    elements_.setConstant(count, S(0));
  }
  Tensor(Shape shape, const std::vector<double>& values) : Tensor(std::move(shape)) {
    require(static_cast<Index>(values.size()) == size(), "tensor_c2",
            [&] { return std::to_string(values.size()) + " values for shape " + to_string(shape_); });
    for (Index i = 0; i < size(); ++i) elements_[i] = S(values[static_cast<std::size_t>(i)]);
  }

  const Shape& shape() const { return shape_; }
  Index rank() const { return static_cast<Index>(shape_.size()); }
  Index extent(Index axis) const {
    return shape_.at(static_cast<std::size_t>(axis < 0 ? axis + rank() : axis));
  }
  Index size() const { return elements_.size(); }

  /// Element by multi-index: x(b, t, d).
  template <class... I>
  S& operator()(I... index) {
    return elements_[offset({static_cast<Index>(index)...})];
  }
  template <class... I>
  const S& operator()(I... index) const {
    return elements_[offset({static_cast<Index>(index)...})];
  }

  /// Elements in row-major order; element i by `[i]`.
  Eigen::Array<S, Eigen::Dynamic, 1>& flat() { return elements_; }
  const Eigen::Array<S, Eigen::Dynamic, 1>& flat() const { return elements_; }
  S& operator[](Index i) { return elements_[i]; }
  const S& operator[](Index i) const { return elements_[i]; }

  /// Same elements under another shape. Errors: SpecError tensor_c2.
  Tensor reshaped(Shape shape) const {
    Tensor other(std::move(shape));
    require(other.size() == size(), "tensor_c2",
            [&] { return to_string(shape_) + " cannot be seen as " + to_string(other.shape_); });
    other.elements_ = elements_;
    return other;
  }

 private:
  Index offset(std::initializer_list<Index> index) const {
    require(static_cast<Index>(index.size()) == rank(), "tensor_c3",
            [&] { return std::to_string(index.size()) + " indices into shape " + to_string(shape_); });
    Index position = 0;
    std::size_t axis = 0;
    for (Index i : index) {
      require(i >= 0 && i < shape_[axis], "tensor_c3", [&] {
        return "index " + std::to_string(i) + " on axis " + std::to_string(axis) + " of " + to_string(shape_);
      });
      position = position * shape_[axis++] + i;
    }
    return position;
  }

  Shape shape_;
  Eigen::Array<S, Eigen::Dynamic, 1> elements_;
};

/// Integer tensors of ids, targets, positions and document numbers are plain row-major vectors of this type.
using Ids = std::vector<std::int64_t>;

}  // namespace assay::reference
