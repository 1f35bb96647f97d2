#include "spec/checkpoint/model_file.hpp"

namespace assay::spec {

safetensors::Header header_of(const Inventory& inventory, const std::string& dtype) {
  return header_of(inventory, [&](const Parameter&) { return dtype; });
}

safetensors::Header header_of(const Inventory& inventory,
                              const std::function<std::string(const Parameter&)>& dtype_of) {
  safetensors::Header header;
  std::uint64_t position = 0;
  for (const Parameter& parameter : inventory.parameters) {
    const std::string dtype = dtype_of(parameter);
    if (dtype.empty()) continue;
    const std::uint64_t end =
        position + static_cast<std::uint64_t>(parameter.size) * safetensors::element_bytes(dtype);
    header.tensors.push_back({parameter.name, dtype, parameter.shape, position, end});
    position = end;
  }
  header.metadata = {{"format", "pt"}};
  return header;
}

}  // namespace assay::spec
