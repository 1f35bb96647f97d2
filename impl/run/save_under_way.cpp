#include "impl/run/save_under_way.hpp"

#include <ATen/ATen.h>

#include <chrono>
#include <utility>

#include "impl/comm/refusal.hpp"
#include "impl/machine/disk_call.hpp"

namespace assay::impl::run {

namespace {
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
}  // namespace

SaveUnderWay::SaveUnderWay(std::unique_ptr<checkpoint::Save> save, const ParameterBuffers& buffers,
                           checkpoint::HostMemory& memory, Communicator& all)
    : save_(std::move(save)), all_(all), snapshot_(save_->snapshot(buffers)) {
  const auto begin_copy = Clock::now();
  host_bytes_ = snapshot_.bytes();
  snapshot_.copy_to(memory);
  copy_seconds_ = seconds_since(begin_copy);
  begin([this] {
    const auto begin_write = Clock::now();
    save_->write(snapshot_, [this] {
      const std::scoped_lock lock(mutex_);
      ++pieces_;
      changed_.notify_all();
    });
    write_seconds_ = seconds_since(begin_write);
  });
}

SaveUnderWay::~SaveUnderWay() {
  if (thread_.joinable()) thread_.join();
}

void SaveUnderWay::begin(std::function<void()> work) {
  ended_ = false;
  thread_ = std::thread([this, work = std::move(work)] {
    const BesideTraining beside;
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    error_ = error;
    ended_ = true;
    changed_.notify_all();
  });
}

void SaveUnderWay::await(const std::function<void()>& piece) {
  const DiskCall disk;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return ended_; });
  const bool more = std::exchange(pieces_seen_, pieces_) != pieces_;
  lock.unlock();
  if (more) piece();
}

bool SaveUnderWay::go_on() {
  const at::Tensor state = at::zeros({2}, at::kLong);  // one goes on, one has failed
  {
    const std::scoped_lock lock(mutex_);
    state[0] = ended_ ? 0 : 1;
    state[1] = ended_ && error_ ? 1 : 0;
  }
  all_.all_reduce_max(state);
  if (state[0].item<std::int64_t>() != 0) return false;
  if (thread_.joinable()) thread_.join();
  if (state[1].item<std::int64_t>() != 0)
    refuse_together(all_, [&] {
      if (error_) std::rethrow_exception(error_);
    });
  if (commits_) return true;
  commits_ = true;
  const at::Tensor longest = at::tensor({copy_seconds_, write_seconds_}, at::kDouble),
                   bytes = at::full({1}, host_bytes_, at::kLong);
  all_.all_reduce_max(longest);
  all_.all_reduce_sum(bytes);
  copy_seconds_ = longest[0].item<double>(), write_seconds_ = longest[1].item<double>();
  host_bytes_ = bytes.item<std::int64_t>();
  if (all_.rank() == 0) begin([this] { saved_ = save_->commit(); });
  return false;
}

spec::record::Checkpoint SaveUnderWay::event() const {
  return {.step = step(),
          .path = saved_.path,
          .bytes = saved_.bytes,
          .seconds = saved_.seconds,
          .asynchronous = true,
          .copy_seconds = copy_seconds_,
          .write_seconds = write_seconds_,
          .delay_seconds = delay_seconds_,
          .host_bytes = host_bytes_};
}

}  // namespace assay::impl::run
