#include "impl/machine/output_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>
#include <utility>

#include "impl/machine/disk_fault.hpp"
#include "impl/machine/patient_call.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl {

namespace {
namespace fs = std::filesystem;

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t any_file = 0666, any_folder = 0777;  // less the umask

[[noreturn]] void fail_at(const char* operation, const fs::path& path, int reason) {
  throw FileError(std::string("cannot ") + operation + " " + path.string() + ": " + cause_of(reason), reason);
}

fs::path place_in(const fs::path& folder, const std::string& name) {
  return folder == "." ? fs::path(name) : folder / name;
}

/// The name, which may be no way out of the folder.
const char* single_part(const std::string& name) {
  if (!spec::is_file_name(name))
    throw UserError(ExitCode::io, spec::quote(name) + " is no name of a file in a folder");
  return name.c_str();
}

/// Removes an entry and what is in it. 0, or why not.
int remove_tree(int parent, const char* name) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  const int no_file = errno;
  const int descriptor = ::openat(parent, name, folder_flags | O_NOFOLLOW);
  if (descriptor < 0) return no_file == EISDIR ? errno : no_file;
  DIR* const entries = ::fdopendir(descriptor);
  if (!entries) {
    const int reason = errno;
    ::close(descriptor);
    return reason;
  }
  int reason = 0;
  while (const dirent* entry = reason == 0 ? ::readdir(entries) : nullptr)
    if (const std::string_view each = entry->d_name; each != "." && each != "..")
      reason = remove_tree(descriptor, entry->d_name);
  ::closedir(entries);
  if (reason == 0 && ::unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) reason = errno;
  return reason;
}
}  // namespace

OutputFolder::OutputFolder(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

OutputFolder::OutputFolder(const fs::path& path) : path_(path.empty() ? "." : path) {
  descriptor_ = ::open(path_.c_str(), folder_flags);
  if (descriptor_ < 0) fail_at("open", path_, errno);
}

OutputFolder OutputFolder::own(const fs::path& path) {
  return OutputFolder(path.parent_path()).within(path.filename().string());
}

OutputFolder::~OutputFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

void OutputFolder::fail(const char* operation, const std::string& name, int reason) const {
  // For a link where a folder belongs the system says ENOTDIR.
  fail_at(operation, place_in(path_, name), reason == ENOTDIR && look(name) == Entry::link ? ELOOP : reason);
}

OutputFolder OutputFolder::within(const std::string& name) const {
  const int descriptor = ::openat(descriptor_, single_part(name), folder_flags | O_NOFOLLOW);
  if (descriptor < 0) fail("open", name, errno);
  return {place_in(path_, name), descriptor};
}

OutputFolder OutputFolder::made(const std::string& name) const {
  if (::mkdirat(descriptor_, single_part(name), any_folder) != 0 && errno != EEXIST)
    fail("make", name, errno);
  return within(name);
}

Entry OutputFolder::look(const std::string& name) const {
  struct stat status {};
  if (::fstatat(descriptor_, single_part(name), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Entry::none;
    fail_at("look at", place_in(path_, name), errno);
  }
  const mode_t mode = status.st_mode;
  return S_ISREG(mode)   ? Entry::file
         : S_ISDIR(mode) ? Entry::folder
         : S_ISLNK(mode) ? Entry::link
                         : Entry::other;
}

std::optional<unsigned> OutputFolder::permissions(const std::string& name) const {
  struct stat status {};
  if (::fstatat(descriptor_, single_part(name), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return S_ISREG(status.st_mode) ? std::optional<unsigned>(status.st_mode & any_folder) : std::nullopt;
}

int OutputFolder::open_file(const std::string& name, int flags) const {
  // Without O_NONBLOCK a FIFO that nobody reads holds this call up.
  const int descriptor = ::openat(descriptor_, single_part(name),
                                  flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, any_file);
  if (descriptor < 0) fail("open", name, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw UserError(ExitCode::io, "cannot write " + place_in(path_, name).string() +
                                      ": it is a pipe or a device, and no file; move it away");
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

std::optional<int> OutputFolder::create(const std::string& name) const {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const int descriptor = ::openat(descriptor_, single_part(name), flags, any_file);
  if (descriptor >= 0) return descriptor;
  if (errno == EEXIST) return {};
  fail("create", name, errno);
}

void OutputFolder::rename(const std::string& from, const std::string& to) const {
  if (::renameat(descriptor_, single_part(from), descriptor_, single_part(to)) == 0) return;
  const int reason = errno;
  fail_at("rename", place_in(path_, from).string() + " to " + place_in(path_, to).string(),
          reason == ENOTDIR && look(to) == Entry::link ? ELOOP : reason);
}

void OutputFolder::link(const std::string& target, const std::string& name) const {
  if (::symlinkat(target.c_str(), descriptor_, single_part(name)) != 0) fail("make the link", name, errno);
}

void OutputFolder::remove(const std::string& name) const {
  if (const int reason = remove_tree(descriptor_, single_part(name))) fail("remove", name, reason);
}

void OutputFolder::sync() const {
  if (::fsync(descriptor_) != 0) fail_at("flush", path_, errno);
}

bool OutputFolder::still_there() const { return leads_to(path_, descriptor_); }

std::string OutputFolder::path_for_others(const std::string& name) const {
  return "/proc/self/fd/" + std::to_string(descriptor_) + "/" + single_part(name);
}

bool leads_to(const fs::path& path, int descriptor) {
  struct stat there {
  }, open{};
  return patiently([&] { return ::stat(path.c_str(), &there); }) == 0 && ::fstat(descriptor, &open) == 0 &&
         there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

namespace {
/// A new file, complete on the disk, or none; with these permissions from before its first byte.
void write_new(const OutputFolder& folder, const std::string& name, std::optional<unsigned> permissions,
               std::string_view text) {
  folder.remove(name);  // of a process that was killed
  const auto descriptor = folder.create(name);
  if (!descriptor) fail_at("create", folder.path() / name, EEXIST);
  int reason = permissions && ::fchmod(*descriptor, *permissions) != 0 ? errno : 0;
  if (reason == 0) reason = write_all(*descriptor, text);
  if (reason == 0 && ::fsync(*descriptor) != 0) reason = errno;
  if (::close(*descriptor) != 0 && reason == 0) reason = errno;
  if (reason == 0) return;
  folder.remove(name);
  fail_at("write", folder.path() / name, reason);
}
}  // namespace

void replace_file(const OutputFolder& folder, const std::string& name, std::string_view text) {
  const std::string fresh = "." + name + "." + std::to_string(::getpid()) + ".partial";
  write_new(folder, fresh, folder.permissions(name), text);
  try {
    folder.rename(fresh, name);
  } catch (const UserError&) {
    folder.remove(fresh);
    throw;
  }
}

namespace {
/// The descriptor that a path like /dev/stdout, /dev/fd/3 or a link to one names; nothing for other paths.
std::optional<int> named_descriptor(fs::path path) {
  constexpr int most_links = 40;  // as the system's own
  std::error_code error;
  const fs::path descriptors = fs::canonical("/proc/self/fd", error);
  for (int links = 0; links < most_links && fs::is_symlink(path, error); ++links) {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (fs::canonical(folder, error) == descriptors) return std::stoi(path.filename().string());
    path = folder / fs::read_symlink(path, error);
  }
  return {};
}

/// The descriptor through which a file is written that something else writes to, too: where the path names a
/// descriptor, and where the file is that of a standard stream. A new file under its name would not hold what
/// the others write, and a second place in it would overwrite that.
std::optional<int> shared_descriptor(const fs::path& path, const struct stat& file) {
  if (const auto named = named_descriptor(path)) return named;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO}) {
    struct stat status {};
    const bool same =
        ::fstat(stream, &status) == 0 && status.st_dev == file.st_dev && status.st_ino == file.st_ino;
    if (same && (::fcntl(stream, F_GETFL) & O_ACCMODE) != O_RDONLY) return stream;
  }
  return {};
}
}  // namespace

void write_output(const fs::path& path, std::string_view text) try {
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (const auto shared = there && S_ISREG(status.st_mode) ? shared_descriptor(path, status) : std::nullopt) {
    std::cout.flush();  // what was printed before stands before it
    if (const int reason = write_all(*shared, text)) fail_at("write to", path, reason);
    return;
  }
  if (!there || S_ISREG(status.st_mode)) {
    std::error_code unknown;
    const fs::path file = there ? fs::canonical(path, unknown) : path;
    return replace_file(OutputFolder(file.parent_path()), file.filename().string(), text);
  }
  if (S_ISDIR(status.st_mode)) fail_at("write to", path, EISDIR);
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) fail_at("open", path, errno);
  const bool stream = S_ISFIFO(status.st_mode) || ::isatty(descriptor) || path == "/dev/null";
  if (stream) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  const int reason = stream ? write_all(descriptor, text) : ENXIO;
  ::close(descriptor);
  if (reason != 0) fail_at("write to", path, reason);
} catch (const UserError& error) {
  throw UserError(error.code(), "cannot write " + path.string() + ": " + error.what());
}

}  // namespace assay::impl
