#include "spec/memory/recompute.hpp"

namespace assay::spec {

std::string_view to_string(Recompute recompute) {
  constexpr std::array<std::string_view, all_recomputes.size()> names = {"none", "norms_swiglu", "attention",
                                                                         "block"};
  return names[static_cast<std::size_t>(recompute)];
}

}  // namespace assay::spec
