#pragma once
// Folders that a run or a command writes to, in which it follows no links.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace assay::impl {

/// What stands under a name in a folder.
enum class Entry { none, file, folder, link, other };

/// An open folder. Its own path may lead through links, since a user gave it (/scratch may be one). What is
/// opened, made, renamed or removed within it is named by one part of a path, and is never reached through a
/// link: neither written through one nor deleted behind one. New files and folders get the permissions that
/// the umask leaves. Errors of all members: UserError(io) naming path, operation and reason; FileError where
/// a call failed.
class OutputFolder {
 public:
  /// "" is the current folder.
  explicit OutputFolder(const std::filesystem::path& path);
  /// A folder within one of the user's: its own name, the last part of `path`, may be no link.
  static OutputFolder own(const std::filesystem::path& path);
  ~OutputFolder();
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }

  OutputFolder within(const std::string& name) const;
  /// The same, made where it is missing.
  OutputFolder made(const std::string& name) const;
  Entry look(const std::string& name) const;
  /// Permission bits of the regular file `name` (0640); nothing where there is none.
  std::optional<unsigned> permissions(const std::string& name) const;

  /// A descriptor of a regular file, for writing. `flags` as open(2) has them: O_CREAT, O_APPEND, O_RDWR.
  int open_file(const std::string& name, int flags) const;
  /// Of a new file; nothing where there is one of that name already.
  std::optional<int> create(const std::string& name) const;
  void rename(const std::string& from, const std::string& to) const;
  /// A new link `name` that leads to `target`.
  void link(const std::string& target, const std::string& name) const;
  /// A file, a link, or a folder with all that is in it; nothing where nothing is there.
  void remove(const std::string& name) const;
  /// Waits until the names in it are on the disk.
  void sync() const;

  /// Whether its path leads to it still: it was not removed, renamed or unmounted, and no other one has come
  /// in its place.
  bool still_there() const;

  /// A path of `name` for others' code, which no link of the folder's own path can lead elsewhere. What
  /// `name` itself is, others' code does not look at: remove it first.
  std::string path_for_others(const std::string& name) const;

 private:
  OutputFolder(std::filesystem::path path, int descriptor);
  [[noreturn]] void fail(const char* operation, const std::string& name, int reason) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Whether `path` leads to the file or folder that is open as `descriptor`.
bool leads_to(const std::filesystem::path& path, int descriptor);

/// Writes all of `bytes`. The reason why not, as errno; 0.
int write_all(int descriptor, std::string_view bytes);

/// Writes the file `name` of a folder: whole, or not at all. At every moment it is the old file or the new
/// one, which has the permissions of the old one. Errors: UserError(io).
void replace_file(const OutputFolder& folder, const std::string& name, std::string_view text);

/// The same for a path that a user gave, which may be a link. A pipe or a terminal is written to as it is,
/// and so is a file that the path names by a descriptor (/dev/stdout, /dev/fd/3) or that a standard stream
/// writes to: behind what stands there. A pipe that nobody reads, a folder or another device is refused.
/// Errors: UserError(io).
void write_output(const std::filesystem::path& path, std::string_view text);

}  // namespace assay::impl
