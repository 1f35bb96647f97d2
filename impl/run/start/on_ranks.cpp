#include "impl/run/start/on_ranks.hpp"

#include <c10/core/InferenceMode.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "impl/comm/launch.hpp"
#include "impl/comm/nccl_communicator.hpp"
#include "impl/health/fault_drill.hpp"
#include "impl/health/watched_communicator.hpp"
#include "impl/run/start/rank_device.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace {
/// The exit code of an error, and whether every rank has thrown it.
std::pair<ExitCode, bool> meaning_of(const std::exception& error) {
  const auto* user = dynamic_cast<const UserError*>(&error);
  const bool spec_error = dynamic_cast<const SpecError*>(&error) != nullptr;
  return {user         ? user->code()
          : spec_error ? ExitCode::usage
                       : ExitCode::bug,
          dynamic_cast<const AgreedError*>(&error) != nullptr};
}

/// A rank that does not go on within a step for so long is lost (impl/health/peer_rules.hpp). [s]
constexpr double stall_in_a_step = 20;

void leave(Communicator& communicator, Watching* watching) {
  communicator.barrier();
  if (watching) watching->watch().leave();
}
}  // namespace

void Rank::take_leave() const {
  if (watching) leave(communicator, watching);
}

int on_ranks(spec::Device wanted, const std::function<int(const Rank&)>& work, std::int64_t stall_seconds) {
  Row unwatched;
  std::optional<Watching> watching;
  std::unique_ptr<Communicator> communicator = make_communicator();
  try {
    const c10::InferenceMode no_autograd;  // backward is written out
    const bool alone = communicator->size() == 1;
    std::optional<FaultDrill> drill = read_drill(std::getenv("ASSAY_FAULT_DRILL"));
    if (!alone) {
      watching.emplace(*communicator, limits_of(drill ? drill->stall_seconds : stall_in_a_step,
                                                static_cast<double>(stall_seconds)));
      communicator->rely_on_watch();
    }
    DeviceChoice choice;
    if (alone)
      choice = choose_device(wanted);
    else
      choice.device = rank_device(wanted, *communicator);
    if (drill && drill->kind == DrillKind::hang && !choice.device.is_cuda())
      throw AgreedError(ExitCode::usage,
                        "ASSAY_FAULT_DRILL: kind=hang is of a GPU, and this run has none: give another kind, "
                        "or compute.device=cuda");
    if (drill && drill->rank != communicator->rank()) drill.reset();
    if (!alone && choice.device.is_cuda())
      communicator = make_nccl_communicator(std::move(communicator), choice.device);
    if (watching) {
      std::shared_ptr<GpuProgress> gpu;
      if (choice.device.is_cuda()) {
        watching->row().set_gpu(gpu_uuid(choice.device.index()));
        gpu = std::make_shared<GpuProgress>(choice.device);
        watching->watch().follow([gpu] { return gpu->reached(); });
      }
      communicator = make_watched_communicator(std::move(communicator), watching->row(), std::move(gpu));
    }
    Progress progress(watching ? watching->row() : unwatched, drill);
    return work({*communicator, choice, progress, watching ? &*watching : nullptr});
  } catch (const std::exception& error) {
    if (!communicator || communicator->size() == 1) throw;
    const auto [code, everywhere] = meaning_of(error);
    if (!everywhere || communicator->rank() == 0)
      std::cerr << "assay: error: "
                << (everywhere ? "" : "rank " + std::to_string(communicator->rank()) + ": ") << error.what()
                << std::endl;
    if (everywhere) {
      leave(*communicator, watching ? &*watching : nullptr);
      return static_cast<int>(code);
    }
    if (watching) watching->watch().fail(error.what());
    // The other ranks wait in a collective for this one: end all of them, with the code of the reason.
    communicator->abort(static_cast<int>(code));
    throw;  // not reached
  }
}

}  // namespace assay::impl::run
