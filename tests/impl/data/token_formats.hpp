#pragma once
// Token files as other programs write them, byte by byte.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/impl/data/token_bytes.hpp"

namespace assay::tests {

/// Little-endian.
inline std::string number(std::uint64_t value, std::int64_t width) {
  std::string bytes;
  for (std::int64_t i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  return bytes;
}

/// dev/data/data_common.py of llm.c, write_datafile.
inline std::string llm_c(const std::vector<std::uint32_t>& ids, std::uint32_t magic, std::uint32_t version,
                         impl::data::TokenType type) {
  std::string bytes = number(magic, 4) + number(version, 4) + number(ids.size(), 4);
  bytes.resize(1024);
  return bytes + token_bytes(ids, type);
}

/// numpy.lib.format: the header's length is a multiple of 64.
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       int version = 1) {
  const std::size_t fixed = version == 1 ? 10 : 12;
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((fixed + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
         number(header.size(), version == 1 ? 2 : 4) + header + data;
}

/// megatron/core/datasets/indexed_dataset.py, _IndexWriter. `documents`: sequences before each and at the
/// end.
inline std::string megatron_idx(unsigned dtype, std::int64_t width, const std::vector<std::int64_t>& sizes,
                                const std::vector<std::int64_t>& documents) {
  std::string bytes = std::string("MMIDIDX\0\0", 9) + number(1, 8) + number(dtype, 1) +
                      number(sizes.size(), 8) + number(documents.size(), 8);
  for (const std::int64_t size : sizes) bytes += number(static_cast<std::uint64_t>(size), 4);
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    bytes += number(static_cast<std::uint64_t>(at), 8);
    at += size * width;
  }
  for (const std::int64_t document : documents) bytes += number(static_cast<std::uint64_t>(document), 8);
  return bytes;
}

}  // namespace assay::tests
