#pragma once
// Matrix products of the size of an attention tile, on one core, for operands that lie in its caches.
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace assay::impl::cpu {

template <class M>
struct Lanes {
  static constexpr std::int64_t count = 32 / sizeof(M);
  typedef M Vector __attribute__((vector_size(32)));
};

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
template <int rows, class M>
void multiply_block(std::int64_t inner, Left<M> a, Rows<const M> b, Rows<M> c, bool add) {
  using Vector = typename Lanes<M>::Vector;
  constexpr std::int64_t lanes = Lanes<M>::count;
  Vector sums[rows][2];
  for (int r = 0; r < rows; ++r) {
    if (add) {
      std::memcpy(&sums[r][0], c.data + r * c.row, sizeof(Vector));
      std::memcpy(&sums[r][1], c.data + r * c.row + lanes, sizeof(Vector));
    } else {
      sums[r][0] = sums[r][1] = Vector{};
    }
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    Vector left, right;
    std::memcpy(&left, b.data + k * b.row, sizeof(Vector));
    std::memcpy(&right, b.data + k * b.row + lanes, sizeof(Vector));
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const M factor = a.data[r * a.row + k * a.column];
      sums[r][0] += factor * left;
      sums[r][1] += factor * right;
    }
  }
  for (int r = 0; r < rows; ++r) {
    std::memcpy(c.data + r * c.row, &sums[r][0], sizeof(Vector));
    std::memcpy(c.data + r * c.row + lanes, &sums[r][1], sizeof(Vector));
  }
}

/// C [rows, columns] = A [rows, inner] B [inner, columns], or += with `add`; `columns` a multiple of
/// column_block<M>. Each entry is summed over the inner index in order.
template <class M>
void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, Left<M> a, Rows<const M> b,
              Rows<M> c, bool add = false) {
  constexpr std::int64_t block = 6;
  for (std::int64_t n = 0; n < columns; n += column_block<M>) {
    for (std::int64_t m = 0; m < rows; m += block) {
      const Left<M> left{a.data + m * a.row, a.row, a.column};
      const Rows<const M> right{b.data + n, b.row};
      const Rows<M> out{c.data + m * c.row + n, c.row};
      switch (std::min(block, rows - m)) {
        case 6:
          multiply_block<6>(inner, left, right, out, add);
          break;
        case 5:
          multiply_block<5>(inner, left, right, out, add);
          break;
        case 4:
          multiply_block<4>(inner, left, right, out, add);
          break;
        case 3:
          multiply_block<3>(inner, left, right, out, add);
          break;
        case 2:
          multiply_block<2>(inner, left, right, out, add);
          break;
        default:
          multiply_block<1>(inner, left, right, out, add);
          break;
      }
    }
  }
}

}  // namespace assay::impl::cpu
