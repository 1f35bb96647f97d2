#pragma once
// The hash of a slice of a parameter, of which each rank can compute the part that it reads.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "spec/parallel/slice.hpp"

namespace assay::spec {

/// Sum modulo 2^64 over the elements of `slice`, which stand in `bytes` row by row, `row_bytes` from one row
/// to the next, of a number that element (row, column) of the parameter gives: its bits and its place, mixed
/// one to one. So a slice's hash is the sum of its parts' hashes, whoever reads them, and a change of one
/// element always changes it. `parameter_columns`: of the whole parameter. Elements have 2, 4 or 8 bytes.
/// Errors: std::invalid_argument.
std::uint64_t slice_hash(std::span<const std::byte> bytes, std::size_t element_bytes, const Slice& slice,
                         std::int64_t parameter_columns, std::size_t row_bytes);
/// Without gaps between rows.
std::uint64_t slice_hash(std::span<const std::byte> bytes, std::size_t element_bytes, const Slice& slice,
                         std::int64_t parameter_columns);

/// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

/// Whether no element is NaN or infinite. `dtype`: F64, F32, F16 or BF16. Errors: std::invalid_argument.
bool all_finite(std::span<const std::byte> bytes, std::string_view dtype);

}  // namespace assay::spec
