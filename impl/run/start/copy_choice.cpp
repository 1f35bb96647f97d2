#include "impl/run/start/copy_choice.hpp"

#include <utility>

#include "impl/machine/host.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

std::string reason_against_copies(const Copied& copied, const spec::Layout& layout,
                                  const std::vector<std::string>& hosts) {
  const spec::Mesh mesh = spec::mesh_of(layout);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto group = spec::group_of(mesh, static_cast<std::int64_t>(rank), spec::Axis::dp_shard);
    const std::int64_t first = group.front();
    if (hosts[rank] == hosts[static_cast<std::size_t>(first)]) continue;
    return refusal(copied,
                   "ranks " + std::to_string(first) + " and " + std::to_string(rank) +
                       ", which hold shares of one copy, run on " + hosts[static_cast<std::size_t>(first)] +
                       " and " + hosts[rank],
                   "parallel.data=hybrid, which moves shares within a host, or ");
  }
  return "";
}

void refuse_copies(const spec::RunConfig& config, const spec::Layout& layout, at::Device device,
                   Communicator& communicator) {
  for (const auto& [by, copied] :
       {std::pair{config.gather, copied_weights}, std::pair{config.scatter, copied_gradients}}) {
    if (by != spec::MovedBy::copy_engines) continue;
    if (!device.is_cuda()) throw UserError(ExitCode::usage, refusal(copied, "this run is on the CPU"));
    const std::string reason = reason_against_copies(copied, layout, communicator.all_gather(host_name()));
    if (!reason.empty()) throw AgreedError(ExitCode::usage, reason);
  }
}

}  // namespace assay::impl::run
