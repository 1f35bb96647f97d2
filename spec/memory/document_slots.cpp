#include "spec/memory/document_slots.hpp"

#include <algorithm>

namespace assay::spec::memory {

std::int64_t document_slots(std::int64_t B, std::int64_t T, std::int64_t documents) {
  constexpr std::int64_t least = 64, tokens = 256;
  const std::int64_t N = B * T;
  std::int64_t slots = std::max(least, B + (N + tokens - 1) / tokens);
  while (slots < documents) slots *= 2;
  return std::min(slots, N);
}

}  // namespace assay::spec::memory
