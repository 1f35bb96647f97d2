#include "impl/run/gather_choice.hpp"

#include "impl/run/host.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

std::string reason_against_copies(const spec::Layout& layout, const std::vector<std::string>& hosts) {
  const spec::Mesh mesh = spec::mesh_of(layout);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto group = spec::group_of(mesh, static_cast<std::int64_t>(rank), spec::Axis::dp_shard);
    const std::int64_t first = group.front();
    if (hosts[rank] == hosts[static_cast<std::size_t>(first)]) continue;
    return "parallel.gather=copy_engines: GPUs of one host copy weights from one another, and ranks " +
           std::to_string(first) + " and " + std::to_string(rank) +
           ", which hold shares of one copy, run on " + hosts[static_cast<std::size_t>(first)] + " and " +
           hosts[rank] +
           "; give parallel.data=hybrid, which gathers within a host, or parallel.gather=multiprocessors";
  }
  return "";
}

void refuse_gather(const spec::RunConfig& config, const spec::Layout& layout, at::Device device,
                   Communicator& communicator) {
  if (config.gather != spec::Gather::copy_engines) return;
  if (!device.is_cuda())
    throw UserError(ExitCode::usage,
                    "parallel.gather=copy_engines copies weights between NVIDIA GPUs, and this run is on the "
                    "CPU; give parallel.gather=multiprocessors");
  const std::string reason = reason_against_copies(layout, communicator.all_gather(host_name()));
  if (!reason.empty()) throw AgreedError(ExitCode::usage, reason);
}

}  // namespace assay::impl::run
