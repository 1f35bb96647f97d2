#include "spec/checkpoint/model_file.hpp"

namespace assay::spec {

safetensors::Header header_of(const Inventory& inventory, const std::string& dtype) {
  safetensors::Header header;
  const std::uint64_t element = safetensors::element_bytes(dtype);
  std::uint64_t position = 0;
  for (const Parameter& parameter : inventory.parameters) {
    const std::uint64_t end = position + static_cast<std::uint64_t>(parameter.size) * element;
    header.tensors.push_back({parameter.name, dtype, parameter.shape, position, end});
    position = end;
  }
  header.metadata = {{"format", "pt"}};
  return header;
}

}  // namespace assay::spec
