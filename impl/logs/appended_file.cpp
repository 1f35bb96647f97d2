#include "impl/logs/appended_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "impl/machine/disk_call.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/machine/patient_call.hpp"

namespace assay::impl::logs {

AppendedFile::~AppendedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

AppendedFile::Moved AppendedFile::move_to(int descriptor) {
  const DiskCall disk;
  Moved moved;
  // This one may be open for writing alone.
  const int from = open(("/proc/self/fd/" + std::to_string(descriptor_)).c_str(), O_RDONLY | O_CLOEXEC);
  std::string block(1 << 20, '\0');
  for (off_t done = 0; moved.reason == 0;) {
    const ssize_t got =
        from < 0 ? -1 : patiently([&] { return pread(from, block.data(), block.size(), done); });
    moved.whole = got >= 0;
    if (got <= 0) break;
    moved.reason = write_all(descriptor, std::string_view(block).substr(0, static_cast<std::size_t>(got)));
    done += got;
  }
  if (from >= 0) close(from);
  if (moved.reason == 0 && !moved.whole && ftruncate(descriptor, 0) != 0) moved.reason = errno;
  if (moved.reason == 0 && fsync(descriptor) != 0) moved.reason = errno;
  if (moved.reason != 0) return moved;
  close(std::exchange(descriptor_, descriptor));
  unflushed_.clear();
  return moved;
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
      reason_ = reason = errno;
  }
  unflushed_.append(waiting_, 0, done);
  waiting_.erase(0, done);
  return reason;
}

int AppendedFile::append(std::string_view bytes) {
  constexpr std::size_t most_waiting = 64 << 20, most_unflushed = 4 << 20;
  waiting_ += bytes;
  int reason = write_waiting();
  if (unflushed_.size() > most_unflushed) reason = flush();
  return waiting_.size() > most_waiting ? reason : 0;
}

/// Once. A system that could not write what it had taken forgets that it has to: the bytes are written anew.
int AppendedFile::flush() {
  const DiskCall disk;
  // A pipe or a device cannot be synchronised (EINVAL): there is nothing to wait for.
  if (fsync(descriptor_) == 0 || errno == EINVAL) {
    unflushed_.clear();
    return 0;
  }
  reason_ = errno;
  if (!take_back()) unflushed_.clear();  // they stay where they are
  return reason_;
}

bool AppendedFile::take_back() {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || status.st_size < static_cast<off_t>(unflushed_.size()))
    return false;
  if (ftruncate(descriptor_, status.st_size - static_cast<off_t>(unflushed_.size())) != 0) return false;
  waiting_.insert(0, std::exchange(unflushed_, {}));
  return true;
}

int AppendedFile::sync(int times) {
  int reason = 0;
  patiently(
      [&] {
        reason = write_waiting();
        if (reason == 0) reason = flush();
        errno = reason;
        return reason == 0 ? 0 : -1;
      },
      times);
  return reason;
}

}  // namespace assay::impl::logs
