#pragma once
// The header of a safetensors file: which tensor lies where. Rules and sources:
// spec/checkpoint/safetensors.md. Nothing here opens a file; the bytes of tensors are never touched.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec::safetensors {

/// Longest header accepted. Unit: [B].
constexpr std::uint64_t header_limit = std::uint64_t{16} << 20;
/// Alignment of the data within files that `serialize` starts. Unit: [B].
constexpr std::uint64_t data_alignment = 64;

struct Tensor {
  std::string name;
  std::string dtype;                ///< F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL
  std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar
  std::uint64_t begin = 0;          ///< first byte, counted from Header::data_offset
  std::uint64_t end = 0;            ///< one past the last byte, counted from Header::data_offset
  bool operator==(const Tensor&) const = default;
};

struct Header {
  std::vector<Tensor> tensors;                  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  std::uint64_t data_offset = 0;                ///< of the first tensor byte in the file [B]
  bool operator==(const Header&) const = default;

  /// Errors: UserError(bad_data) naming the tensor that is not there.
  const Tensor& at(std::string_view name) const;
};

/// Bytes of one element of `dtype`, 0 when the name is unknown. Unit: [B].
std::uint64_t element_bytes(std::string_view dtype);

/// Bytes from the start of the file to the first tensor byte, read from its first 8 bytes: what `parse` needs
/// as its prefix. Unit: [B]. Errors: UserError(bad_data) safetensors_c1.
std::uint64_t header_bytes(std::span<const std::byte> prefix, std::string_view origin = "safetensors file");

/// Reads and checks a header. `prefix` holds at least the first header_bytes(prefix) bytes of a file of
/// `file_size` bytes; `origin` (a path) is quoted in errors. Errors: UserError(bad_data), text "<origin>:
/// safetensors_cN: what is wrong", for every rule of the page.
Header parse(std::span<const std::byte> prefix, std::uint64_t file_size,
             std::string_view origin = "safetensors file");

/// The bytes that precede the tensors: length, JSON, spaces up to a multiple of data_alignment. Tensors are
/// listed in the order given; `header.data_offset` is ignored (it will be the size of the result). Errors:
/// UserError(bug) where parse would refuse the result.
std::string serialize(const Header& header);

}  // namespace assay::spec::safetensors
