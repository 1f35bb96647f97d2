#include "impl/run/state_mark.hpp"

namespace assay::impl::run {

StateMark::StateMark(at::Device device) {
  if (!device.is_cuda()) return;
  stream_ = std::make_unique<StreamWord>(device);
  stream_->write(written_);
}

void StateMark::write(std::uint32_t count) {
  written_ = count;
  if (stream_)
    stream_->write(count);
  else
    count_ = count;
}

void StateMark::is(const std::optional<WholeState>& state) {
  const bool changes = written_ % 2 == 1;
  if (!state) {
    if (!changes) write(written_ + 1);
    return;
  }
  const std::uint32_t count = changes ? written_ + 1 : written_;
  {
    const std::scoped_lock lock(mutex_);
    known_[count / 2 % known_.size()] = {count, *state};
  }
  if (changes) write(count);
}

std::optional<WholeState> StateMark::at(std::uint32_t count) const {
  const std::scoped_lock lock(mutex_);
  const Known& known = known_[count / 2 % known_.size()];
  return count % 2 == 0 && known.count == count ? std::optional(known.state) : std::nullopt;
}

}  // namespace assay::impl::run
