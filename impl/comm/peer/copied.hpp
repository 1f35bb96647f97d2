#pragma once
// What GPUs' copy engines move between ranks, and how it is said that they cannot.
#include <string>

namespace assay::impl {

/// Tensors that copy engines move where a setting of their own says so.
struct Copied {
  const char* setting;  ///< "parallel.gather"
  const char* what;     ///< "weights"
};
inline constexpr Copied copied_weights{"parallel.gather", "weights"},
    copied_gradients{"parallel.scatter", "gradients"};

/// The text of an error: the setting, what it asks for, `why` that cannot be, as the end of a sentence, and
/// what to set, with `instead` before it where there is another way ("parallel.data=hybrid, ..., or ").
std::string refusal(const Copied& copied, const std::string& why, const std::string& instead = "");

}  // namespace assay::impl
