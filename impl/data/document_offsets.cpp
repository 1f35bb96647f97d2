#include "impl/data/document_offsets.hpp"

#include <stdexcept>
#include <string>

#include "spec/memory/document_places.hpp"

namespace assay::impl::data {

std::vector<std::int32_t> document_offsets(std::span<const std::int32_t> documents, std::int64_t T) {
  const auto N = static_cast<std::int64_t>(documents.size());
  if (T < 1 || N % T != 0)
    throw std::invalid_argument("document_offsets: sequences of " + std::to_string(T) + " tokens in " +
                                std::to_string(N));
  std::vector<std::int32_t> offsets;
  for (std::int64_t n = 0; n < N; ++n) {
    const auto at = static_cast<std::size_t>(n);
    if (n % T == 0 || documents[at] != documents[at - 1]) offsets.push_back(static_cast<std::int32_t>(n));
  }
  const auto used = static_cast<std::int64_t>(offsets.size());
  offsets.resize(static_cast<std::size_t>(spec::memory::document_places(N / T, T, used)) + 1,
                 static_cast<std::int32_t>(N));
  return offsets;
}

}  // namespace assay::impl::data
