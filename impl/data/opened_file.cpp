#include "impl/data/opened_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "impl/machine/disk_call.hpp"
#include "spec/text/file.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {

OpenedFile::OpenedFile(std::filesystem::path path) : path_(std::move(path)) {
  try {
    descriptor_ = spec::open_for_reading(path_);
  } catch (const spec::FileFault& fault) {
    if (fault.kind() == spec::FileFault::Kind::not_regular)
      refuse(ExitCode::bad_data, "is not a regular file; name the file of tokens itself");
    refuse(ExitCode::io, "cannot be opened: " + fault.why() + "; check the path and its permissions");
  }
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  bytes_ = status.st_size;
  changed_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (known && bytes_ > 0) return;
  ::close(descriptor_);
  refuse(ExitCode::bad_data, "is empty; write it again, or take it off the list");
}

OpenedFile::OpenedFile(OpenedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      changed_(other.changed_) {}

OpenedFile::~OpenedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OpenedFile::refuse(ExitCode code, const std::string& what) const {
  throw UserError(code, "token file " + spec::quote(path_.string()) + " " + what);
}

void OpenedFile::read(std::int64_t offset, std::span<unsigned char> into) const {
  while (!into.empty()) {
    const ssize_t got = [&] {
      const DataCall data;
      return ::pread(descriptor_, into.data(), into.size(), offset);
    }();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      refuse(ExitCode::io, "cannot be read at byte " + std::to_string(offset) + ": " + std::strerror(errno) +
                               "; check the disk or the network file system");
    if (got == 0)
      refuse(ExitCode::bad_data, "ends at byte " + std::to_string(offset) + " but had " +
                                     std::to_string(bytes_) +
                                     " bytes when it was opened; another program has shortened it");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

std::string OpenedFile::beginning(std::int64_t most) const {
  std::string text(static_cast<std::size_t>(std::min(most, bytes_)), '\0');
  read(0, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
  return text;
}

std::uint64_t little_endian(const unsigned char* bytes, std::int64_t width) {
  std::uint64_t value = 0;
  for (std::int64_t i = width; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

}  // namespace assay::impl::data
