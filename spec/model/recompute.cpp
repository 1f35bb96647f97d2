#include "spec/model/recompute.hpp"

namespace assay::spec {

std::string_view to_string(Recompute recompute) {
  constexpr std::array<std::string_view, all_recomputes.size()> names = {"none", "norms_swiglu", "mla_up",
                                                                         "attention", "block"};
  return names[static_cast<std::size_t>(recompute)];
}

std::vector<Recompute> recomputes_of(const ModelSpec& model) {
  std::vector<Recompute> out;
  for (const Recompute each : all_recomputes)
    if (model.latent || each != Recompute::mla_up) out.push_back(each);
  return out;
}

}  // namespace assay::spec
