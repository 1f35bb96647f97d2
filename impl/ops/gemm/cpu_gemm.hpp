#pragma once
// GEMMs of the size of an attention tile, on one core, for operands that lie in its caches.
#include <algorithm>
#include <cstdint>

#include "impl/ops/cpu_math.hpp"

namespace assay::impl::cpu {

/// Columns are padded to a multiple of this.
template <class M>
constexpr std::int64_t column_block = 2 * Lanes<M>::count;

template <class M>
constexpr std::int64_t padded(std::int64_t columns) {
  return (columns + column_block<M> - 1) / column_block<M> * column_block<M>;
}

/// Strided left operand: element (m, k) at data[m * row + k * column].
template <class M>
struct Left {
  const M* data;
  std::int64_t row, column;
};

/// Row-major matrix with rows `row` elements apart.
template <class M>
struct Rows {
  M* data;
  std::int64_t row;
};

/// `rows` x column_block<M> entries of C from registers: C = A B, or C += A B.
template <int rows, bool add, class M>
void multiply_block(std::int64_t inner, Left<M> a, Rows<const M> b, Rows<M> c) {
  using Lane = Lanes<M>;
  typename Lane::Vector left[rows], right[rows];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    left[r] = add ? Lane::load(c.data + r * c.row) : Lane::all(0);
    right[r] = add ? Lane::load(c.data + r * c.row + Lane::count) : Lane::all(0);
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    const auto b_left = Lane::load(b.data + k * b.row),
               b_right = Lane::load(b.data + k * b.row + Lane::count);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const M factor = a.data[r * a.row + k * a.column];
      left[r] += factor * b_left;
      right[r] += factor * b_right;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    Lane::store(c.data + r * c.row, left[r]);
    Lane::store(c.data + r * c.row + Lane::count, right[r]);
  }
}

/// C [rows, columns] = A [rows, inner] B [inner, columns], or += with `add`; `columns` a multiple of
/// column_block<M>. Each entry is summed over the inner index in order. Returns the multiply-adds that ran.
template <class M, bool add = false>
std::int64_t multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, Left<M> a, Rows<const M> b,
                      Rows<M> c) {
  constexpr std::int64_t block = 6;
  std::int64_t done = 0;
  for (std::int64_t n = 0; n < columns; n += column_block<M>) {
    for (std::int64_t m = 0; m < rows; m += block) {
      const Left<M> left{a.data + m * a.row, a.row, a.column};
      const Rows<const M> right{b.data + n, b.row};
      const Rows<M> out{c.data + m * c.row + n, c.row};
      done += std::min(block, rows - m) * column_block<M> * inner;
      switch (std::min(block, rows - m)) {
        case 6:
          multiply_block<6, add>(inner, left, right, out);
          break;
        case 5:
          multiply_block<5, add>(inner, left, right, out);
          break;
        case 4:
          multiply_block<4, add>(inner, left, right, out);
          break;
        case 3:
          multiply_block<3, add>(inner, left, right, out);
          break;
        case 2:
          multiply_block<2, add>(inner, left, right, out);
          break;
        default:
          multiply_block<1, add>(inner, left, right, out);
          break;
      }
    }
  }
  return done;
}

}  // namespace assay::impl::cpu
