#pragma once
// Whether shares can be moved as parallel.gather and parallel.scatter say, as far as that is known before
// anything is allocated.
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/peer/copied.hpp"
#include "spec/config/run_config.hpp"
#include "spec/parallel/data_layout.hpp"

namespace assay::impl::run {

/// Why GPUs cannot copy one another's shares of `layout`: ranks that hold one copy between them and run on
/// several of `hosts`, which are named by rank. Empty where they can.
std::string reason_against_copies(const Copied& copied, const spec::Layout& layout,
                                  const std::vector<std::string>& hosts);

/// Refuses parallel.gather=copy_engines and parallel.scatter=copy_engines on the CPU and across hosts.
/// Collective. Errors: UserError(usage), AgreedError(usage).
void refuse_copies(const spec::RunConfig& config, const spec::Layout& layout, at::Device device,
                   Communicator& communicator);

}  // namespace assay::impl::run
