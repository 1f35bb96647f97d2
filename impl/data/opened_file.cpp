#include "impl/data/opened_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "impl/machine/disk_call.hpp"
#include "impl/machine/patient_call.hpp"
#include "spec/text/file.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {

namespace {
OpenedFile::Stamp stamp_of(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return {.bytes = status.st_size,
          .modified = nanoseconds(status.st_mtim),
          .changed = nanoseconds(status.st_ctim)};
}
}  // namespace

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
  stamp_ = stamp_of(status);
  if (known && bytes() > 0) return;
  ::close(descriptor_);
  refuse(ExitCode::bad_data, "is empty; write it again, or take it off the list");
}

OpenedFile::OpenedFile(OpenedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      stamp_(other.stamp_) {}

OpenedFile::~OpenedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OpenedFile::Stamp OpenedFile::stamp_now() const {
  struct stat status {};
  const DataCall data;
  if (::fstat(descriptor_, &status) != 0)
    refuse(ExitCode::io, std::string("cannot be asked for its size: ") + std::strerror(errno) +
                             "; check the disk or the network file system");
  return stamp_of(status);
}

void OpenedFile::refuse(ExitCode code, const std::string& what) const {
  throw UserError(code, "token file " + spec::quote(path_.string()) + " " + what);
}

void OpenedFile::read(std::int64_t offset, std::span<unsigned char> into) const {
  while (!into.empty()) {
    const ssize_t got = patiently([&] {
      const DataCall data;
      return ::pread(descriptor_, into.data(), into.size(), offset);
    });
    if (got < 0)
      refuse(ExitCode::io, "cannot be read at byte " + std::to_string(offset) + ": " + std::strerror(errno) +
                               "; check the disk or the network file system");
    if (got == 0)
      refuse(ExitCode::bad_data, "ends at byte " + std::to_string(offset) + " but had " +
                                     std::to_string(bytes()) +
                                     " bytes when it was opened; another program has shortened it");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

std::string OpenedFile::beginning(std::int64_t most) const {
  std::string text(static_cast<std::size_t>(std::min(most, bytes())), '\0');
  read(0, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
  return text;
}

std::uint64_t little_endian(const unsigned char* bytes, std::int64_t width) {
  std::uint64_t value = 0;
  for (std::int64_t i = width; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

}  // namespace assay::impl::data
