#include "impl/checkpoint/checkpoint.hpp"

#include <algorithm>

#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/manifest.hpp"
#include "impl/checkpoint/parts.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

std::int64_t size_on_disk(const spec::Inventory& inventory, Dtype states) {
  std::int64_t bytes = 0;
  for (const Part& part : parts)
    for (const spec::Parameter& parameter : inventory.parameters)
      if (holds(part, parameter))
        bytes += parameter.size * (parameter.learned() ? element_bytes(states)
                                                       : std::max<std::int64_t>(element_bytes(states), 4));
  return bytes;
}

std::optional<Validated> best_of(const std::string& directory) {
  const auto best = best_checkpoint(fs::path(directory) / "checkpoints");
  return best ? read_manifest(*best).validation : std::nullopt;
}

std::optional<std::string> newest(const std::string& directory) {
  const auto found = marked_checkpoints(fs::path(directory) / "checkpoints");
  if (found.empty()) return {};
  return found.back().path.string();
}

}  // namespace assay::impl::checkpoint
