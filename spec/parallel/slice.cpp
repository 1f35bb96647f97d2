#include "spec/parallel/slice.hpp"

#include <algorithm>

namespace assay::spec {

namespace {
std::int64_t columns_in(const std::vector<std::int64_t>& shape) {
  std::int64_t columns = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) columns *= shape[d];
  return columns;
}
}  // namespace

Slice whole_slice(const std::vector<std::int64_t>& shape) {
  return {0, shape.empty() ? 1 : shape.front(), 0, columns_in(shape)};
}

Slice intersection(const Slice& a, const Slice& b) {
  const std::int64_t row = std::max(a.row, b.row), column = std::max(a.column, b.column),
                     row_end = std::min(a.row + a.rows, b.row + b.rows),
                     column_end = std::min(a.column + a.columns, b.column + b.columns);
  if (row >= row_end || column >= column_end) return {};
  return {row, row_end - row, column, column_end - column};
}

Slice relative(const Slice& slice, const Slice& in) {
  return {slice.row - in.row, slice.rows, slice.column - in.column, slice.columns};
}

std::string suffix_of(const Slice& slice, const std::vector<std::int64_t>& shape) {
  if (slice == whole_slice(shape)) return "";
  const auto range = [](std::int64_t first, std::int64_t count) {
    return std::to_string(first) + ":" + std::to_string(first + count);
  };
  return "[" + range(slice.row, slice.rows) +
         (shape.size() > 1 ? "," + range(slice.column, slice.columns) : "") + "]";
}

std::vector<std::int64_t> shape_of(const Slice& slice, const std::vector<std::int64_t>& shape) {
  if (slice == whole_slice(shape)) return shape;
  if (shape.size() <= 1) return {slice.rows};
  return {slice.rows, slice.columns};
}

std::vector<Slice> slices_of_range(std::int64_t begin, std::int64_t end, std::int64_t columns) {
  std::vector<Slice> out;
  while (begin < end) {
    const std::int64_t row = begin / columns, column = begin % columns;
    // Whole rows, or what is left of this one.
    const std::int64_t rows = column == 0 ? std::max<std::int64_t>(1, (end - begin) / columns) : 1;
    const std::int64_t across = std::min(columns - column, end - begin);
    out.push_back({row, rows, column, across});
    begin += rows * across;
  }
  return out;
}

std::vector<HeldRange> held_ranges(const Placement& placement, const Parameter& own, std::int64_t begin,
                                   std::int64_t end) {
  const std::int64_t columns = columns_in(own.shape);
  std::int64_t first_row = 0, first_column = 0;
  if (placement.dimension == 0) {
    first_row = placement.begin;
    end = std::min(end, placement.count * columns);  // the vocabulary's padding is behind them
  } else if (placement.dimension == 1) {
    first_column = placement.begin;
  }
  std::vector<HeldRange> out;
  for (Slice slice : slices_of_range(begin, end, columns)) {
    const std::int64_t first = slice.row * columns + slice.column;
    slice.row += first_row, slice.column += first_column;
    out.push_back({slice, first});
  }
  return out;
}

Inventory::Range equal_part(std::int64_t size, std::int64_t part, std::int64_t parts) {
  // Without the product size * part, which may be too large.
  const auto first = [&](std::int64_t number) {
    return size / parts * number + size % parts * number / parts;
  };
  return {first(part), first(part + 1)};
}

}  // namespace assay::spec
