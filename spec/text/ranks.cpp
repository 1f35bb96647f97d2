#include "spec/text/ranks.hpp"

#include "spec/text/quantity.hpp"

namespace assay::spec {

namespace {
std::string counted(std::int64_t count, const char* noun) {
  return grouped(count) + " " + noun + (count == 1 ? "" : "s");
}
}  // namespace

std::string ranks_text(std::int64_t ranks) { return counted(ranks, "rank"); }

std::string data_ranks_text(std::int64_t data_ranks, std::int64_t tensor_ranks) {
  if (tensor_ranks == 1) return ranks_text(data_ranks);
  return counted(data_ranks, "data-parallel rank") + " of " + counted(tensor_ranks, "tensor rank");
}

}  // namespace assay::spec
