#include "impl/run/start/on_ranks.hpp"

#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "impl/comm/launch.hpp"
#include "impl/comm/nccl_communicator.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/comm/staged_communicator.hpp"
#include "impl/comm/stream_word.hpp"
#include "impl/health/watched_communicator.hpp"
#include "impl/run/start/fault_drill.hpp"
#include "impl/run/start/rank_device.hpp"
#include "impl/run/stop_signal.hpp"
#include "spec/error.hpp"
#include "spec/failure.hpp"
#include "spec/text/labels.hpp"

namespace assay::impl::run {

namespace {
/// A rank that does not go on within a step for so long is lost (impl/health/judge.hpp). [s]
constexpr double stall_in_a_step = 20;

/// Between GPUs: NCCL. The environment may ask for the staged communicator, whose ranks share the first GPU
/// of their host (ASSAY_COMMUNICATOR=staged, for tests only): `choice` then says so in the run's warnings.
std::unique_ptr<Communicator> between_gpus(std::unique_ptr<Communicator> control, Seating seating,
                                           DeviceChoice& choice) {
  if (seating == Seating::own_gpu) return make_nccl_communicator(std::move(control), choice.device);
  c10::cuda::set_device(choice.device.index());
  auto staged = make_staged_communicator(std::move(control), choice.device);
  choice.notice =
      "ASSAY_COMMUNICATOR=staged, for tests: ranks share the first GPU of their host, and their "
      "collectives go by " +
      staged->engine() + "; unset it to measure anything";
  return staged;
}

void leave(Communicator& communicator, RankWatch* watch) {
  communicator.barrier();
  if (watch) watch->leave();
}
}  // namespace

void Rank::take_leave() const {
  if (watch) leave(communicator, watch);
}

int on_ranks(const std::function<RankSettings()>& settings, const std::function<int(const Rank&)>& work,
             const std::function<bool()>& stopped) {
  Row unwatched;
  std::optional<RankWatch> watch;
  std::unique_ptr<Communicator> communicator = make_communicator(stopped);
  try {
    const c10::InferenceMode no_autograd;  // backward is written out
    const bool alone = communicator->size() == 1;
    RankSettings asked;
    std::optional<FaultDrill> drill;
    refuse_together(*communicator, [&] {
      asked = settings();
      drill = read_drill(std::getenv("ASSAY_FAULT_DRILL"));
    });
    if (!alone) {
      watch.emplace(*communicator, limits_of(drill ? drill->stall_seconds : stall_in_a_step,
                                             static_cast<double>(asked.stall_seconds)));
      communicator->rely_on_watch();
      leave_lost_ranks_to_the_watch();
    }
    DeviceChoice choice;
    const Seating seating = staged_is_wanted() ? Seating::first_gpu : Seating::own_gpu;
    if (alone)
      choice = choose_device(asked.device);
    else
      choice.device = rank_device(asked.device, *communicator, seating);
    if (drill && drill->kind == DrillKind::hang && !choice.device.is_cuda())
      throw AgreedError(ExitCode::usage,
                        "ASSAY_FAULT_DRILL: kind=hang is of a GPU, and this run has none: give another kind, "
                        "or compute.device=cuda");
    if (drill && drill->rank != communicator->rank()) drill.reset();
    if (!alone && choice.device.is_cuda())
      communicator = between_gpus(std::move(communicator), seating, choice);
    if (watch) {
      std::shared_ptr<StreamWord> gpu;
      if (choice.device.is_cuda()) {
        watch->row().set_gpu(gpu_uuid(choice.device.index()));
        gpu = std::make_shared<StreamWord>(choice.device);
        watch->row().follow([gpu] { return gpu->read(); });
      }
      communicator = make_watched_communicator(std::move(communicator), watch->row(), std::move(gpu));
    }
    Row& row = watch ? watch->row() : unwatched;
    if (drill) row.on_enter(planted(*drill));
    return work({*communicator, choice, row, watch ? &*watch : nullptr});
  } catch (const std::exception& error) {
    if (!communicator || communicator->size() == 1) throw;
    const ExitCode code = exit_code_of(error);
    const bool everywhere = dynamic_cast<const AgreedError*>(&error) != nullptr;
    if (!everywhere || communicator->rank() == 0)
      std::cerr << "assay: error: "
                << (everywhere ? "" : "rank " + std::to_string(communicator->rank()) + ": ")
                << spec::without_labels(failure_of(error).text) << std::endl;
    if (everywhere) {
      leave(*communicator, watch ? &*watch : nullptr);
      return static_cast<int>(code);
    }
    if (watch) watch->fail(spec::without_labels(error.what()));
    // The other ranks wait in a collective for this one: end all of them, with the code of the reason.
    communicator->abort(static_cast<int>(code));
    throw;  // not reached
  }
}

}  // namespace assay::impl::run
