#include "impl/data/sample_source.hpp"

#include <stdexcept>

namespace assay::impl::data {

void SampleSource::check_request(std::int64_t sample, std::span<std::int32_t> ids) const {
  if (sample < 0 || sample >= samples())
    throw std::out_of_range("sample " + std::to_string(sample) + " of " + std::to_string(samples()));
  if (static_cast<std::int64_t>(ids.size()) != sequence_length() + 1)
    throw std::out_of_range("room for " + std::to_string(ids.size()) + " ids, a sample has " +
                            std::to_string(sequence_length() + 1));
}

}  // namespace assay::impl::data
