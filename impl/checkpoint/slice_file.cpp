#include "impl/checkpoint/slice_file.hpp"

#include "spec/checkpoint/safetensors.hpp"

namespace assay::impl::checkpoint {

std::string rank_file(int rank, int ranks, const std::string& ending) {
  const auto padded = [](int number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "rank-" + padded(rank) + "-of-" + padded(ranks) + ending;
}

std::string slice_header(std::vector<SliceEntry>& slices,
                         const std::function<const ParameterEntry&(const std::string& name)>& parameter) {
  spec::safetensors::Header header;
  std::uint64_t position = 0;
  for (SliceEntry& slice : slices) {
    const ParameterEntry& whole = parameter(slice.parameter);
    slice.begin = position;
    position +=
        static_cast<std::uint64_t>(slice.slice.size()) * spec::safetensors::element_bytes(whole.dtype);
    header.tensors.push_back({slice.part + "/" + slice.parameter + spec::suffix_of(slice.slice, whole.shape),
                              whole.dtype, spec::shape_of(slice.slice, whole.shape), slice.begin, position});
  }
  header.metadata = {{"format", "pt"}};
  const std::string text = spec::safetensors::serialize(header);
  for (SliceEntry& slice : slices) slice.begin += text.size();
  return text;
}

}  // namespace assay::impl::checkpoint
