#pragma once
// The tensor file of a model: every parameter under its Hugging Face name, one after the other.
#include <functional>
#include <string>

#include "spec/checkpoint/safetensors.hpp"
#include "spec/model/inventory.hpp"

namespace assay::spec {

/// The header of a file that holds all parameters of `inventory` as `dtype`, in its order and without gaps.
/// `dtype` as safetensors names it. Domain: a known dtype (safetensors::element_bytes).
safetensors::Header header_of(const Inventory& inventory, const std::string& dtype);
/// The same with a type for each; without those whose type is empty.
safetensors::Header header_of(const Inventory& inventory,
                              const std::function<std::string(const Parameter&)>& dtype_of);

}  // namespace assay::spec
