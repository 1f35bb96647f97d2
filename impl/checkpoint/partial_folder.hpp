#pragma once
// A folder that is complete under its final name, or gone.
#include <functional>
#include <string>

#include "impl/machine/output_folder.hpp"

namespace assay::impl::checkpoint {

/// Makes a folder, and removes it on the way out unless it got its final name.
class PartialFolder {
 public:
  /// The folder `name` of `parent`. Errors: UserError(io).
  PartialFolder(OutputFolder parent, std::string name);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const OutputFolder& folder() const { return folder_; }
  /// Its final name within the parent. Errors: UserError(io).
  void rename_to(const std::string& final_name);

 private:
  OutputFolder parent_;
  std::string name_;
  OutputFolder folder_;
  bool complete_ = false;
};

/// Calls `fill` with a new folder beside `path`, which is then on the disk under that name, or gone where
/// `fill` throws. Makes the folders above it, and takes away what an interrupted call left. Errors:
/// UserError(usage) where `path` exists, UserError(io), those of `fill`.
void make_folder(const std::string& path, const std::function<void(const OutputFolder&)>& fill);

/// A new file that is on the disk when the call returns. Errors: UserError(io).
void write_text(const OutputFolder& folder, const std::string& name, const std::string& text);

}  // namespace assay::impl::checkpoint
