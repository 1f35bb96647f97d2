#include "impl/checkpoint/partial_folder.hpp"

#include <filesystem>
#include <span>
#include <utility>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/machine/disk_call.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

PartialFolder::PartialFolder(OutputFolder parent, std::string name)
    : parent_(std::move(parent)), name_(std::move(name)), folder_([this] {
        const DiskCall disk;
        return parent_.made(name_);
      }()) {}

PartialFolder::~PartialFolder() {
  const DiskCall disk;
  if (complete_) return;
  try {
    parent_.remove(name_);
  } catch (const UserError&) {
    // A later call takes it away.
  }
}

void PartialFolder::rename_to(const std::string& final_name) {
  const DiskCall disk;
  parent_.rename(name_, final_name);
  complete_ = true;
}

void make_folder(const std::string& path, const std::function<void(const OutputFolder&)>& fill) {
  namespace fs = std::filesystem;
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code unknown;
  if (fs::exists(fs::symlink_status(folder, unknown)))
    throw UserError(ExitCode::usage, path + " exists; give a folder that does not");
  create_durable_folder(folder.parent_path());
  const std::string name = folder.filename().string(), partial = "." + name + ".partial";
  OutputFolder parent(folder.parent_path());
  parent.remove(partial);
  PartialFolder made(std::move(parent), partial);
  fill(made.folder());
  sync_folder(made.folder().path());
  made.rename_to(name);
  sync_folder(folder.parent_path());
}

void write_text(const OutputFolder& folder, const std::string& name, const std::string& text) {
  DurableFile file(folder, name);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace assay::impl::checkpoint
