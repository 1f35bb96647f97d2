#include "impl/comm/nccl_communicator.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "impl/comm/let_go.hpp"
#include "impl/comm/max_keys.hpp"
#include "impl/comm/stream_lane.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
/// Longer than any work that one rank does alone, such as a search for the fastest GEMM.
constexpr std::chrono::minutes patience{5};

void nccl_check(ncclResult_t status, const char* call, int rank, ncclComm_t comm) {
  if (status == ncclSuccess) return;
  const char* last = ncclGetLastError(comm);
  throw UserError(ExitCode::peer_lost, "rank " + std::to_string(rank) + ": NCCL call failed: " + call + ": " +
                                           ncclGetErrorString(status) +
                                           (last && *last ? std::string(" (") + last + ")" : std::string()) +
                                           "; a rank has probably died, look at the first message of the "
                                           "others, or set NCCL_DEBUG=WARN");
}
/// Locks out let_go, which another thread may call, and makes the call.
#define ASSAY_NCCL_CHECK(call)                            \
  do {                                                    \
    const std::scoped_lock lock_of_calls(family_->calls); \
    require_held();                                       \
    nccl_check(call, #call, rank(), comm_);               \
  } while (false)

/// The communicators of a rank, all of which it lets go of when another rank is lost: their kernels would
/// wait for that rank for ever.
struct Family {
  std::timed_mutex calls;
  std::vector<ncclComm_t> held{};
  bool released = false;
  std::atomic<bool> failed = false;  ///< a collective of one of them will not be done
  LetGo let_go{[this] { release(); }};

  void release() {
    const std::unique_lock lock(calls, std::chrono::seconds(1));
    // A call that hangs keeps the lock; the end of the process ends it, too.
    if (!lock.owns_lock()) return;
    released = true;
    for (const ncclComm_t comm : held) ncclCommAbort(comm);
    held.clear();
  }
};

ncclDataType_t datatype(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return ncclFloat64;
    case at::kFloat:
      return ncclFloat32;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kLong:
      return ncclInt64;
    case at::kInt:  // of max_keys
      return ncclInt32;
    default:
      throw std::invalid_argument(std::string("NCCL moves fp64, fp32, bf16 and int64 here, not ") +
                                  at::toString(tensor.scalar_type()));
  }
}

std::string bytes_of(const ncclUniqueId& id) { return {id.internal, sizeof id.internal}; }

ncclUniqueId unique_id(const std::string& bytes) {
  ncclUniqueId id;
  if (bytes.size() != sizeof id.internal) throw std::invalid_argument("not the id of an NCCL communicator");
  bytes.copy(id.internal, sizeof id.internal);
  return id;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> control, const ncclUniqueId& id, at::Device device,
                   c10::cuda::CUDAStream stream, std::shared_ptr<Family> family)
      : control_(std::move(control)), device_(device), lane_(stream, device), family_(std::move(family)) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    // Not under the lock: a rank that is lost meanwhile would keep it.
    nccl_check(ncclCommInitRankConfig(&comm_, size(), id, rank(), &config), "ncclCommInitRankConfig", rank(),
               comm_);
    const std::scoped_lock lock(family_->calls);
    family_->held.push_back(comm_);
  }
  ~NcclCommunicator() override {
    {
      const std::scoped_lock lock(family_->calls);
      if (family_->released || std::erase(family_->held, comm_) == 0) return;
    }
    if (family_->failed)
      ncclCommAbort(comm_);  // destroy would wait for the rank that is gone
    else
      ncclCommDestroy(comm_);
  }

  std::string engine() const override { return "nccl"; }
  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }

  Ticket begin(const Request& request) override {
    const std::vector<at::Tensor> tensors = tensors_of(request);
    if (tensors.empty() || tensors.front().is_cpu()) {
      control_->wait(control_->begin(request));
      return 0;
    }
    check(request, rank(), size());
    const at::Tensor &in = request.input, &out = request.output;
    switch (request.collective) {
      case spec::Collective::all_reduce:
        return request.reduction == Reduction::max ? all_reduce_max(out) : all_reduce_sum(out);
      case spec::Collective::reduce_scatter:
        lane_.enter(tensors);
        ASSAY_NCCL_CHECK(ncclReduceScatter(in.const_data_ptr(), out.data_ptr(), count(out), datatype(out),
                                           ncclSum, comm_, lane_.stream()));
        return leave();
      case spec::Collective::all_gather:
        lane_.enter(tensors);
        ASSAY_NCCL_CHECK(
            ncclAllGather(in.const_data_ptr(), out.data_ptr(), in.nbytes(), ncclInt8, comm_, lane_.stream()));
        return leave();
      case spec::Collective::all_to_all:
      case spec::Collective::exchange:
      case spec::Collective::send:
      case spec::Collective::receive: {
        const Messages messages = messages_of(request);
        if (messages.sends.empty() && messages.receives.empty()) return 0;
        lane_.enter(tensors);
        ASSAY_NCCL_CHECK(exchange(messages));
        return leave();
      }
      case spec::Collective::texts:
      case spec::Collective::barrier:
        break;  // which move no tensors
    }
    throw std::logic_error("no such collective");
  }

  void wait(Ticket ticket) override { lane_.wait(ticket); }
  void wait_all() override { lane_.wait_all(); }

  void settle() override { await(c10::cuda::getCurrentCUDAStream(device_.index())); }

  at::Tensor received(Ticket, const at::Tensor& tensor) override {
    const c10::cuda::CUDAStreamGuard in_lane(lane_.stream());
    at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
    host.copy_(tensor, /*non_blocking=*/true);
    await(lane_.stream());
    return host;
  }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    // Every group's first rank makes an id; every rank gets all ids.
    ncclUniqueId id;
    const bool leads = ranks.at(0) == rank();
    if (leads) ASSAY_NCCL_CHECK(ncclGetUniqueId(&id));
    const auto ids = control_->all_gather(leads ? bytes_of(id) : std::string());
    // One stream for all groups: their kernels run in the order in which they begin, on every rank.
    return std::make_unique<NcclCommunicator>(control_->group(ranks),
                                              unique_id(ids.at(static_cast<std::size_t>(ranks[0]))), device_,
                                              lane_.stream(), family_);
  }

  [[noreturn]] void abort(int exit_code) override {
    control_->abort(exit_code);
    std::_Exit(exit_code);
  }

 private:
  /// The calling thread waits for what `stream` was given so far.
  void await(const c10::cuda::CUDAStream& stream) {
    at::cuda::CUDAEvent reached(cudaEventDisableTiming);
    reached.record(stream);
    const auto until = std::chrono::steady_clock::now() + patience;
    for (int turn = 0; !reached.query(); ++turn) {
      if (turn < 1000) continue;  // the usual end of a step is a matter of microseconds
      require_alive(until);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    require_alive(until);
  }
  void require_held() const {
    if (family_->released)
      throw UserError(ExitCode::peer_lost,
                      "rank " + std::to_string(rank()) + " has heard that a rank is lost");
  }
  static std::size_t count(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

  Ticket all_reduce_sum(const at::Tensor& tensor) {
    lane_.enter({tensor});
    ASSAY_NCCL_CHECK(ncclAllReduce(tensor.const_data_ptr(), tensor.data_ptr(), count(tensor),
                                   datatype(tensor), ncclSum, comm_, lane_.stream()));
    return leave();
  }
  Ticket all_reduce_max(const at::Tensor& tensor) {
    const at::Tensor keys = max_keys(tensor);
    lane_.enter({tensor, keys});
    ASSAY_NCCL_CHECK(ncclAllReduce(keys.const_data_ptr(), keys.data_ptr(), count(keys), datatype(keys),
                                   ncclMax, comm_, lane_.stream()));
    const c10::cuda::CUDAStreamGuard in_lane(lane_.stream());
    write_numbers(keys, tensor);
    return leave();
  }
  /// One group of NCCL's: one kernel moves all messages, so none waits for another.
  ncclResult_t exchange(const Messages& messages) {
    ncclResult_t status = ncclGroupStart();
    if (status != ncclSuccess) return status;
    for (const auto& [tensor, peer] : messages.sends)
      if (status == ncclSuccess)
        status = ncclSend(tensor.const_data_ptr(), tensor.nbytes(), ncclInt8, peer, comm_, lane_.stream());
    for (const auto& [tensor, peer] : messages.receives)
      if (status == ncclSuccess)
        status = ncclRecv(tensor.data_ptr(), tensor.nbytes(), ncclInt8, peer, comm_, lane_.stream());
    const ncclResult_t ended = ncclGroupEnd();
    return status != ncclSuccess ? status : ended;
  }

  Ticket leave() {
    lane_.leave(++last_);
    return last_;
  }

  /// Asks all communicators of this rank: the collectives that are waited for may be a group's.
  void require_alive(std::chrono::steady_clock::time_point until) {
    {
      const std::scoped_lock lock(family_->calls);
      require_held();
      for (const ncclComm_t comm : family_->held) {
        ncclResult_t asynchronous = ncclSuccess;
        nccl_check(ncclCommGetAsyncError(comm, &asynchronous), "ncclCommGetAsyncError", rank(), comm);
        if (asynchronous == ncclSuccess || asynchronous == ncclInProgress) continue;
        family_->failed = true;
        nccl_check(asynchronous, "a collective of this step", rank(), nullptr);
      }
    }
    if (std::chrono::steady_clock::now() < until) return;
    family_->failed = true;
    throw UserError(ExitCode::peer_lost,
                    "rank " + std::to_string(rank()) + ": this step's work on the GPU is not done after " +
                        std::to_string(patience.count()) +
                        " minutes: another rank is gone or stalled before a collective that this one waits "
                        "in; look at the others' messages and processes");
  }

  std::unique_ptr<Communicator> control_;
  at::Device device_;
  StreamLane lane_;
  const std::shared_ptr<Family> family_;
  ncclComm_t comm_ = nullptr;
  Ticket last_ = 0;
};
}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> control,
                                                     at::Device device) {
  // Sums by the switch's multicast need a set-up that some containers and hosts hang in.
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  c10::cuda::set_device(device.index());
  ncclUniqueId id;
  const bool leads = control->rank() == 0;
  if (leads) nccl_check(ncclGetUniqueId(&id), "ncclGetUniqueId(&id)", 0, nullptr);
  const auto ids = control->all_gather(leads ? bytes_of(id) : std::string());
  return std::make_unique<NcclCommunicator>(
      std::move(control), unique_id(ids.at(0)), device,
      c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index()), std::make_shared<Family>());
}

}  // namespace assay::impl
