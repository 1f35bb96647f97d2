#include "impl/checkpoint/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "impl/checkpoint/input_file.hpp"
#include "impl/machine/disk_call.hpp"
#include "impl/machine/disk_fault.hpp"
#include "impl/machine/patient_call.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace {
[[noreturn]] void fail(const char* operation, const std::filesystem::path& path) {
  const int reason = errno;
  throw FileError(std::string("cannot ") + operation + " " + path.string() + ": " + cause_of(reason) +
                      "; checkpoints committed before are intact",
                  reason);
}
}  // namespace

DurableFile::DurableFile(const OutputFolder& folder, const std::string& name) : path_(folder.path() / name) {
  const DiskCall disk;
  if (const auto descriptor = folder.create(name)) {
    descriptor_ = *descriptor;
    return;
  }
  errno = EEXIST;
  fail("create", path_);
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  hash_.add(bytes);
  while (!bytes.empty()) {
    const auto written = [&] {
      const DiskCall disk;
      return ::write(descriptor_, bytes.data(), bytes.size());
    }();
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += written;
  }
}

void DurableFile::commit() {
  const DiskCall disk;
  if (fsync(descriptor_) != 0) fail("flush", path_);
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("close", path_);
}

std::optional<std::int64_t> free_bytes(const std::filesystem::path& folder) {
  const DiskCall disk;
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(folder, error).lexically_normal();
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(there, error);
  // What no disk is behind (/proc) has no size.
  if (error || space.capacity == 0) return {};
  return static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX));
}

void sync_folder(const std::filesystem::path& folder) {
  const DiskCall disk;
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", folder);
  const int result = fsync(descriptor);
  close(descriptor);
  if (result != 0) fail("flush", folder);
}

void create_durable_folder(const std::filesystem::path& folder) {
  const DiskCall disk;
  const auto refuse = [](const std::filesystem::path& path, int reason, const std::string& why) {
    throw FileError(
        "cannot make the folder " + path.string() + ": " + why + ", or give another run.directory", reason);
  };
  std::error_code error;
  std::vector<std::filesystem::path> missing;  // from the innermost
  for (std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
       !std::filesystem::exists(path, error) && path.has_relative_path(); path = path.parent_path())
    missing.push_back(path);
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
    if (!std::filesystem::create_directory(*path, error) && error)
      refuse(*path, error.value(), cause_of(error.value()));
    try {
      sync_folder(path->parent_path());
    } catch (const UserError&) {
      std::filesystem::remove(*path, error);  // a later call must not take it for durable
      throw;
    }
  }
  if (!std::filesystem::is_directory(folder, error)) refuse(folder, ENOTDIR, "it is a file; move it away");
}

std::string read_whole(const std::filesystem::path& path, const spec::FileLimit& limit) {
  const DiskCall disk;
  return patiently([&] { return spec::read_file(path, limit); });
}

}  // namespace assay::impl::checkpoint
