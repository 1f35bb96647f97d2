#pragma once
// Elements of tensors in another floating-point type, without a tensor library.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace assay::spec {

/// Writes the elements of `from` into `into`, rounded to nearest, ties to even. Types are F64, F32, F16 and
/// BF16, as safetensors names them; bytes are little-endian. Returns the index of the first finite element
/// that `to` cannot hold, which became an infinity; nothing where there is none. Same type: the same bytes.
/// Domain: both spans hold the same whole number of elements.
std::optional<std::size_t> convert_elements(std::span<const std::byte> from, std::string_view from_type,
                                            std::span<std::byte> into, std::string_view to);

/// Element `index` of `bytes`. Domain: as above.
double element_value(std::span<const std::byte> bytes, std::string_view type, std::size_t index);

}  // namespace assay::spec
