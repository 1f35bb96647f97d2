#pragma once
// The known word that a misspelt one most likely meant.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec {

/// Damerau-Levenshtein distance in its optimal string alignment form: insertions, deletions, substitutions
/// and swaps of neighbouring bytes, each at cost 1, no substring edited twice.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// The entry of `known` with the least distance to `word`, ASCII case ignored; of equals the one that shares
/// most of its beginning and end, or else the first. Nothing when the least distance exceeds max(1, half of
/// the word's length): a suggestion further away would only confuse.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace assay::spec
