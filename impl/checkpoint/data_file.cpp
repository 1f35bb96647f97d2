#include "impl/checkpoint/data_file.hpp"

#include "impl/checkpoint/input_file.hpp"
#include "spec/checkpoint/content_hash.hpp"

namespace assay::impl::checkpoint {

DataFile data_file(const std::string& path) {
  const InputFile file(path);
  return {.path = path,
          .bytes = static_cast<std::int64_t>(file.size()),
          .sample = spec::sample_hash(file.size(), [&](std::uint64_t position, std::span<std::byte> into) {
            file.read(position, into);
          })};
}

}  // namespace assay::impl::checkpoint
