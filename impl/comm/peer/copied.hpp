#pragma once
// The tensors that copy engines move between GPUs, and the text of the error where they cannot.
#include <string>

namespace assay::impl {

/// Tensors that copy engines move where their setting says so.
struct Copied {
  const char* setting;  ///< "parallel.gather"
  const char* what;     ///< "weights"
};
inline constexpr Copied copied_weights{"parallel.gather", "weights"},
    copied_gradients{"parallel.scatter", "gradients"};

/// The text of an error: the setting, what it asks for, `why` it is impossible, as the end of a sentence, and
/// what to set, with `instead` before it where there is another way ("parallel.data=hybrid, ..., or ").
std::string refusal(const Copied& copied, const std::string& why, const std::string& instead = "");

}  // namespace assay::impl
