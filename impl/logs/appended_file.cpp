#include "impl/logs/appended_file.hpp"

#include <unistd.h>

#include <cerrno>

#include "impl/machine/disk_call.hpp"

namespace assay::impl::logs {

AppendedFile::~AppendedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

int AppendedFile::write_waiting() {
  const DiskCall disk;
  std::size_t done = 0;
  int reason = 0;
  while (done < waiting_.size() && reason == 0) {
    const ssize_t written = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (written >= 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      reason = errno;
  }
  waiting_.erase(0, done);
  return reason;
}

int AppendedFile::append(std::string_view bytes) {
  constexpr std::size_t most_waiting = 64 << 20;
  waiting_ += bytes;
  const int reason = write_waiting();
  const bool full = reason == ENOSPC || reason == EDQUOT;
  return full && waiting_.size() <= most_waiting ? 0 : reason;
}

int AppendedFile::sync() {
  if (const int reason = write_waiting()) return reason;
  const DiskCall disk;
  // A pipe or a device cannot be synchronised (EINVAL): there is nothing to wait for.
  return fsync(descriptor_) != 0 && errno != EINVAL ? errno : 0;
}

}  // namespace assay::impl::logs
