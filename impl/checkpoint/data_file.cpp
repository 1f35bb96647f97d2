#include "impl/checkpoint/data_file.hpp"

#include <vector>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/input_file.hpp"

namespace assay::impl::checkpoint {

DataFile data_file(const std::string& path) {
  constexpr std::uint64_t pieces = 16, piece = 16 << 10;
  const InputFile file(path);
  ContentHash hash;
  std::vector<std::byte> bytes(file.size() <= pieces * piece ? file.size() : piece);
  // A short file is one piece.
  const std::uint64_t count = bytes.size() == file.size() ? 1 : pieces, room = file.size() - bytes.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    file.read(room / (pieces - 1) * i + room % (pieces - 1) * i / (pieces - 1), bytes);
    hash.add(bytes);
  }
  return {.path = path, .bytes = static_cast<std::int64_t>(file.size()), .sample = hash.hex()};
}

}  // namespace assay::impl::checkpoint
