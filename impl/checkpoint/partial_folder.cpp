#include "impl/checkpoint/partial_folder.hpp"

#include <span>
#include <utility>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/machine/disk_call.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

PartialFolder::PartialFolder(std::filesystem::path path) : path_(std::move(path)) {
  const DiskCall disk;
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) throw UserError(ExitCode::io, "cannot create " + path_.string() + ": " + error.message());
}

PartialFolder::~PartialFolder() {
  const DiskCall disk;
  std::error_code ignored;
  if (!complete_) std::filesystem::remove_all(path_, ignored);
}

void PartialFolder::rename_to(const std::filesystem::path& final_path) {
  const DiskCall disk;
  std::error_code error;
  std::filesystem::rename(path_, final_path, error);
  if (error) throw UserError(ExitCode::io, "cannot rename " + path_.string() + ": " + error.message());
  complete_ = true;
}

NewFolder new_folder(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code unknown;
  if (fs::exists(folder, unknown))
    throw UserError(ExitCode::usage, path + " exists; give a folder that does not");
  create_durable_folder(folder.parent_path());
  fs::path partial = folder.parent_path() / ("." + folder.filename().string() + ".partial");
  fs::remove_all(partial, unknown);
  return {std::move(folder), std::move(partial)};
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace assay::impl::checkpoint
