#include "impl/checkpoint/safetensors_file.hpp"

#include <algorithm>
#include <vector>

namespace assay::impl::checkpoint {

spec::safetensors::Header header_in(const InputFile& file) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(8, file.size()));
  file.read(0, bytes);
  bytes.resize(std::min(spec::safetensors::header_bytes(bytes, file.path().string()), file.size()));
  file.read(0, bytes);
  return spec::safetensors::parse(bytes, file.size(), file.path().string());
}

}  // namespace assay::impl::checkpoint
