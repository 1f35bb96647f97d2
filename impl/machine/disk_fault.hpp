#pragma once
// Why a call on a file failed, and what a user can do about that cause.
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "spec/error.hpp"

namespace assay::impl {

/// A disk or a quota that has no room, the one cause that room mends.
inline bool is_full(int reason) { return reason == ENOSPC || reason == EDQUOT; }

/// "Permission denied; look at who may write there": the system's reason (errno) and what to do about it.
inline std::string cause_of(int reason) {
  const auto remedy = [&] {
    switch (reason) {
      case ENOSPC:
        return "free space, or give a folder on another disk";
      case EDQUOT:
        return "free space within the quota, or give a folder on another disk";
      case EFBIG:
        return "no file of this process may be as long: raise the limit (ulimit -f), or give a folder on a "
               "file "
               "system that takes it";
      case ENOENT:
      case ENOTDIR:
        return "look at what became of the folder";
      case EACCES:
      case EPERM:
        return "look at who may write there";
      case EROFS:
        return "its disk is mounted for reading alone: mount it for writing, or give a folder on another one";
      case ELOOP:
        return "put the file or folder itself there";
      case EEXIST:
      case EISDIR:
      case ENOTEMPTY:
        return "look at what stands there";
      case EMFILE:
      case ENFILE:
        return "raise the limit of open files (ulimit -n)";
      default:
        return "look at the disk, or the network to it";
    }
  }();
  const std::string why = reason == ELOOP ? "it is a link, and nothing is written or removed through links"
                                          : std::generic_category().message(reason);
  return why + "; " + remedy;
}

/// An error of a call on a file that is written.
class FileError : public UserError {
 public:
  FileError(const std::string& what, int reason) : UserError(ExitCode::io, what), reason_(reason) {}
  int reason() const { return reason_; }  ///< errno

 private:
  int reason_;
};

/// A file that would grow past its limit is then an error of the call (EFBIG), as one on a full disk is, and
/// not the end of the process.
inline void make_file_limit_an_error() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace assay::impl
