#pragma once
// A folder that is complete under its final name, or gone.
#include <filesystem>
#include <string>

namespace assay::impl::checkpoint {

/// Makes a folder, and removes it on the way out unless it got its final name.
class PartialFolder {
 public:
  /// Errors: UserError(io).
  explicit PartialFolder(std::filesystem::path path);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  /// Errors: UserError(io).
  void rename_to(const std::filesystem::path& final_path);

 private:
  std::filesystem::path path_;
  bool complete_ = false;
};

/// A folder that is to be made whole or not at all: its name, and that of the PartialFolder beside it.
struct NewFolder {
  std::filesystem::path path, partial;
};
/// Makes the folder above it, and takes away what an interrupted call left. Errors: UserError(usage) where
/// `path` exists, UserError(io).
NewFolder new_folder(const std::string& path);

/// A new file that is on the disk when the call returns. Errors: UserError(io).
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace assay::impl::checkpoint
