#include "spec/text/ranks.hpp"

#include "spec/text/quantity.hpp"

namespace assay::spec {

std::string data_ranks_text(std::int64_t data_ranks, std::int64_t tensor_ranks) {
  const auto counted = [](std::int64_t count, const std::string& noun) {
    return grouped(count) + " " + noun + (count == 1 ? "" : "s");
  };
  if (tensor_ranks == 1) return counted(data_ranks, "rank");
  return counted(data_ranks, "data-parallel rank") + " of " + counted(tensor_ranks, "tensor rank");
}

}  // namespace assay::spec
