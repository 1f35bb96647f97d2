#pragma once
// Rectangles of parameters: what a rank holds, writes to a checkpoint, or reads from one. Rules and example:
// spec/parallel/slice.md.
#include <cstdint>
#include <string>
#include <vector>

#include "spec/model/inventory.hpp"
#include "spec/parallel/placement.hpp"

namespace assay::spec {

/// Rows and columns of a parameter that is seen as a matrix: dimension 0 gives the rows, the others together
/// the columns; a vector has one column.
struct Slice {
  std::int64_t row = 0, rows = 0;        ///< first one, and how many
  std::int64_t column = 0, columns = 0;  ///< likewise

  std::int64_t size() const { return rows * columns; }
  bool operator==(const Slice&) const = default;
};

/// All of it.
Slice whole_slice(const std::vector<std::int64_t>& shape);
/// What lies in both; without rows and columns where that is nothing.
Slice intersection(const Slice& a, const Slice& b);
/// Of `slice` relative to the first row and column of `in`, which contains it.
Slice relative(const Slice& slice, const Slice& in);
/// "[4:8,0:64]", empty where it is all of a parameter of that shape.
std::string suffix_of(const Slice& slice, const std::vector<std::int64_t>& shape);
/// A tensor of it: [rows] of a vector, the whole shape of the whole, else [rows, columns].
std::vector<std::int64_t> shape_of(const Slice& slice, const std::vector<std::int64_t>& shape);

/// Elements [begin, end) of a matrix with `columns` columns, row by row, as at most three rectangles: the end
/// of a row, rows, the beginning of a row. Empty ones are left out.
std::vector<Slice> slices_of_range(std::int64_t begin, std::int64_t end, std::int64_t columns);

/// A rectangle of a parameter of the model, whose entries a rank's own parameter holds one after the other.
struct HeldRange {
  Slice slice;             ///< of the whole model's parameter
  std::int64_t first = 0;  ///< of its entries, in the rank's own parameter
};
/// Of elements [begin, end) of `own`, a parameter of a tensor rank's model: what they are of the model's. The
/// rows that pad a vocabulary are of none.
std::vector<HeldRange> held_ranges(const Placement& placement, const Parameter& own, std::int64_t begin,
                                   std::int64_t end);

/// Part `part` of `parts` equal ones of elements [0, size): what one of several ranks that hold the same
/// writes, and vouches for.
Inventory::Range equal_part(std::int64_t size, std::int64_t part, std::int64_t parts);

}  // namespace assay::spec
