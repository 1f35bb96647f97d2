#include "impl/comm/mpi_communicator.hpp"

#include <ATen/ATen.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <stdexcept>

#include "impl/comm/max_keys.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
/// Throws when an MPI call failed; `call` is its text.
void mpi_check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw UserError(ExitCode::peer_lost,
                  std::string("MPI call failed: ") + call + ": " +
                      std::string(text, static_cast<std::size_t>(length)) +
                      "; a rank has probably died, look at the first message of the others");
}
#define ASSAY_MPI_CHECK(call) mpi_check(call, #call)

/// bf16 is no type of MPI's: two bytes, and a sum of our own.
struct Bf16 {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op sum = MPI_OP_NULL;
};

void sum_bf16(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const c10::BFloat16*>(in);
  auto* to = static_cast<c10::BFloat16*>(inout);
  for (int i = 0; i < *count; ++i) to[i] = static_cast<float>(to[i]) + static_cast<float>(from[i]);
}

const Bf16& bf16() {
  static const Bf16 made = [] {
    Bf16 out;
    ASSAY_MPI_CHECK(MPI_Type_contiguous(2, MPI_BYTE, &out.type));
    ASSAY_MPI_CHECK(MPI_Type_commit(&out.type));
    ASSAY_MPI_CHECK(MPI_Op_create(sum_bf16, /*commute=*/1, &out.sum));
    return out;
  }();
  return made;
}

MPI_Datatype datatype(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kFloat:
      return MPI_FLOAT;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:  // of max_keys
      return MPI_INT32_T;
    case at::kBFloat16:
      return bf16().type;
    default:
      throw std::invalid_argument(std::string("MPI reduces fp64, fp32, bf16 and int64, not ") +
                                  at::toString(type));
  }
}

MPI_Op sum_of(at::ScalarType type) { return type == at::kBFloat16 ? bf16().sum : MPI_SUM; }

/// MPI counts elements in an int; a flat buffer may hold more.
constexpr std::int64_t most_elements = std::int64_t{1} << 30;

void require_cpu(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.is_contiguous())
    throw std::invalid_argument("MPI moves contiguous CPU tensors");
}

/// The processes of `comm`, which it frees unless it is the world.
class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm) : comm_(comm) {
    ASSAY_MPI_CHECK(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    ASSAY_MPI_CHECK(MPI_Comm_rank(comm_, &rank_));
    ASSAY_MPI_CHECK(MPI_Comm_size(comm_, &size_));
  }
  ~MpiCommunicator() override {
    int ended = 0;
    if (comm_ != MPI_COMM_WORLD && MPI_Finalized(&ended) == MPI_SUCCESS && !ended) MPI_Comm_free(&comm_);
  }

  std::string engine() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    require_cpu(tensor);
    const MPI_Datatype type = datatype(tensor.scalar_type());  // first: what is refused is not pending
    all_reduce(next({tensor}), tensor, type, sum_of(tensor.scalar_type()));
    return last_;
  }

  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    require_cpu(tensor);
    const at::Tensor keys = max_keys(tensor);
    const MPI_Datatype type = datatype(keys.scalar_type());
    Pending& pending = next({tensor, keys});
    pending.finish = [keys, tensor] { write_numbers(keys, tensor); };
    all_reduce(pending, keys, type, MPI_MAX);
    return last_;
  }

  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    require_cpu(whole);
    const bool within = check_parts(whole, shard, rank_, size_);
    const MPI_Datatype type = datatype(shard.scalar_type());
    // MPI's buffers may not overlap.
    const at::Tensor received = within ? at::empty_like(shard) : shard;
    Pending& pending = next({whole, received, shard});
    if (within) pending.finish = [shard, received] { at::Tensor(shard).copy_(received); };
    ASSAY_MPI_CHECK(MPI_Ireduce_scatter_block(whole.const_data_ptr(), received.data_ptr(), part_of(shard),
                                              type, sum_of(shard.scalar_type()), comm_,
                                              &pending.requests.emplace_back()));
    return last_;
  }

  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    require_cpu(whole);
    const bool within = check_parts(whole, shard, rank_, size_);
    Pending& pending = next({whole, shard});
    MPI_Datatype type = MPI_DATATYPE_NULL;  // bytes that mean nothing to MPI
    ASSAY_MPI_CHECK(MPI_Type_contiguous(static_cast<int>(shard.element_size()), MPI_BYTE, &type));
    ASSAY_MPI_CHECK(MPI_Type_commit(&type));
    ASSAY_MPI_CHECK(MPI_Iallgather(within ? MPI_IN_PLACE : shard.const_data_ptr(), part_of(shard), type,
                                   whole.data_ptr(), part_of(shard), type, comm_,
                                   &pending.requests.emplace_back()));
    ASSAY_MPI_CHECK(MPI_Type_free(&type));  // freed once the gather is done
    return last_;
  }

  Ticket begin_exchange(const std::vector<Message>& messages) override {
    const std::vector<Message> filled = check_messages(messages, size_);
    for (const Message& message : filled) require_cpu(message.tensor);
    Pending& pending = next({});
    for (const Message& message : filled) {
      pending.alive.push_back(message.tensor);
      auto* bytes = static_cast<char*>(message.tensor.data_ptr());
      const auto size = static_cast<std::int64_t>(message.tensor.nbytes());
      for (std::int64_t first = 0; first < size; first += most_elements) {
        const int count = static_cast<int>(std::min(most_elements, size - first));
        MPI_Request& request = pending.requests.emplace_back();
        if (message.way == Message::Way::send)
          ASSAY_MPI_CHECK(MPI_Isend(bytes + first, count, MPI_BYTE, message.peer, 0, comm_, &request));
        else
          ASSAY_MPI_CHECK(MPI_Irecv(bytes + first, count, MPI_BYTE, message.peer, 0, comm_, &request));
      }
    }
    return last_;
  }

  void wait(Ticket ticket) override {
    while (!pending_.empty() && pending_.front().ticket <= ticket) {
      Pending& first = pending_.front();
      ASSAY_MPI_CHECK(
          MPI_Waitall(static_cast<int>(first.requests.size()), first.requests.data(), MPI_STATUSES_IGNORE));
      if (first.finish) first.finish();
      pending_.pop_front();
    }
  }
  void wait_all() override { wait(last_); }

  std::vector<std::string> all_gather(const std::string& text) override {
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(static_cast<std::size_t>(size_)), offsets(static_cast<std::size_t>(size_));
    ASSAY_MPI_CHECK(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_));
    int total = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r) offsets[r] = total, total += lengths[r];
    std::string all(static_cast<std::size_t>(total), '\0');
    ASSAY_MPI_CHECK(MPI_Allgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                                   MPI_CHAR, comm_));
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < lengths.size(); ++r)
      texts.push_back(all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
    return texts;
  }

  void barrier() override { ASSAY_MPI_CHECK(MPI_Barrier(comm_)); }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
    if (mine == ranks.end()) throw std::invalid_argument("a rank asks for a group without itself");
    MPI_Comm part = MPI_COMM_NULL;
    ASSAY_MPI_CHECK(MPI_Comm_split(comm_, static_cast<int>(ranks.front()),
                                   static_cast<int>(mine - ranks.begin()), &part));
    return std::make_unique<MpiCommunicator>(part);
  }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  struct Pending {
    Ticket ticket = 0;
    std::vector<at::Tensor> alive{};
    std::vector<MPI_Request> requests{};
    std::function<void()> finish{};  ///< once complete
  };

  Pending& next(std::vector<at::Tensor> alive) {
    pending_.push_back({.ticket = ++last_, .alive = std::move(alive)});
    return pending_.back();
  }
  void all_reduce(Pending& pending, const at::Tensor& tensor, MPI_Datatype type, MPI_Op op) {
    auto* bytes = static_cast<char*>(tensor.data_ptr());
    for (std::int64_t first = 0; first < tensor.numel(); first += most_elements)
      ASSAY_MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, bytes + first * tensor.element_size(),
                                     static_cast<int>(std::min(most_elements, tensor.numel() - first)), type,
                                     op, comm_, &pending.requests.emplace_back()));
  }
  static int part_of(const at::Tensor& shard) {
    if (shard.numel() > most_elements)
      throw std::invalid_argument("MPI moves parts of at most 2^30 elements, not " +
                                  std::to_string(shard.numel()));
    return static_cast<int>(shard.numel());
  }

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  Ticket last_ = 0;
  std::deque<Pending> pending_;
};

void initialise_mpi() {
  int ready = 0, provided = 0;
  ASSAY_MPI_CHECK(MPI_Initialized(&ready));
  if (!ready) {
    ASSAY_MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    std::atexit([] { MPI_Finalize(); });
  }
  ASSAY_MPI_CHECK(MPI_Query_thread(&provided));
  require_thread_level(provided);
}
}  // namespace

void require_thread_level(int provided) {
  // MPI orders the levels; only the trainer's thread calls MPI, beside the loader's and those of the CPU
  // loops.
  if (provided >= MPI_THREAD_FUNNELED) return;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  const std::string whole(version, static_cast<std::size_t>(length));
  throw UserError(ExitCode::usage,
                  "this MPI library allows no threads beside the one that calls it (it provides level " +
                      std::to_string(provided) +
                      ", training needs MPI_THREAD_FUNNELED = " + std::to_string(MPI_THREAD_FUNNELED) +
                      "): " + whole.substr(0, whole.find_first_of(",\n")) +
                      "; use one that was built with thread support (Debian and Ubuntu: apt install "
                      "openmpi-bin), or train with one rank");
}

std::unique_ptr<Communicator> make_mpi_communicator() {
  initialise_mpi();
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
}

}  // namespace assay::impl
