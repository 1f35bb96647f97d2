#pragma once
// What a model's name says of its size, against its exact count.
#include <optional>
#include <string_view>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// The parameters in a name, from its largest part that is a size: "gpt3-1.3b" 1.3e9, "qwen3-30b-a3b" 30e9,
/// "gpt3-125m" 125e6, "olmoe-1b-7b", which names the active ones first, 7e9. Parts end at '-' and '_';
/// letters may be capital. Nothing where no part is a number with b or m: "gpt2", and "mixtral-8x7b", whose
/// experts share the rest. [parameters]
std::optional<double> nominal_parameters(std::string_view name);

/// A name may round: Llama 2 7B has 6.74B, Llama 3 8B 8.03B.
constexpr double nominal_tolerance = 0.05;

/// The nominal size of a model whose count differs from it by more than `nominal_tolerance` of it; nothing
/// for the others. For a model that holds the constraints (see `check`).
std::optional<double> misnamed(const ModelSpec& model);

}  // namespace assay::spec
