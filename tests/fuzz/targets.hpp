#pragma once
// What is fuzzed: every reader of text from outside. A target takes any bytes; it returns, or the process
// dies (a sanitizer, an exception that is none of ours, a promise that does not hold).
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay::fuzz {

using Bytes = std::span<const std::uint8_t>;

struct Target {
  std::string_view name;
  void (*run)(Bytes);
};

/// All of them; the corpus of each is tests/fuzz/corpus/<name>/.
const std::vector<Target>& targets();

/// Null when there is none of that name.
const Target* find_target(std::string_view name);

}  // namespace assay::fuzz
