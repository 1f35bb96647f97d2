#include "impl/logs/record_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "impl/machine/disk_fault.hpp"
#include "impl/machine/output_folder.hpp"
#include "spec/error.hpp"
#include "spec/record/write.hpp"

namespace assay::impl::logs {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& action, int reason) {
  throw FileError(file.string() + ": cannot " + action + " the run's record: " + cause_of(reason), reason);
}

/// Offset after the last line break in the first `size` bytes of the open file, in steps from their end.
off_t behind_last_line_break(int descriptor, off_t size) {
  char block[4096];
  while (size > 0) {
    const auto length = static_cast<std::size_t>(size < off_t(sizeof block) ? size : off_t(sizeof block));
    const ssize_t got = pread(descriptor, block, length, size - static_cast<off_t>(length));
    if (got <= 0) return size;
    for (ssize_t i = got; i > 0; --i)
      if (block[i - 1] == '\n') return size - (got - i);
    size -= got;
  }
  return 0;
}

/// The last of the lines that end at `end`, without its line break; nothing where it cannot be read.
std::optional<std::string> last_line(int descriptor, off_t end) {
  const off_t begin = behind_last_line_break(descriptor, end - 1);
  std::string line(static_cast<std::size_t>(end - 1 - begin), '\0');
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t got =
        pread(descriptor, line.data() + done, line.size() - done, begin + static_cast<off_t>(done));
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return line;
}

/// The system drops the lock with the process, however it ends. A file system without locks has none to give.
void lock(int descriptor, const std::filesystem::path& file) {
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(descriptor);
  throw UserError(ExitCode::usage, file.string() +
                                       ": another run is writing this record; wait for it to end, or give "
                                       "another run.directory");
}

}  // namespace

RecordWriter::RecordWriter(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code error;
  if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path(), error);
  if (error) refuse(file_, "create the folder of", error.value());
  const int descriptor =
      OutputFolder(file_.parent_path()).open_file(file_.filename().string(), O_RDWR | O_CREAT | O_APPEND);
  lock(descriptor, file_);
  lines_.emplace(descriptor);
  struct stat status {};
  if (fstat(descriptor, &status) == 0) {
    const off_t end = behind_last_line_break(descriptor, status.st_size);
    if (end != status.st_size && ftruncate(descriptor, end) != 0) refuse(file_, "repair", errno);
    if (end > 0) {
      const auto line = last_line(descriptor, end);
      if (!line) refuse(file_, "read", errno);
      chain_.go_on_behind(*line);
    }
  }
}

bool RecordWriter::in_place() const { return leads_to(file_, lines_->descriptor()); }

bool RecordWriter::move_to(const std::filesystem::path& file) {
  const OutputFolder folder(file.parent_path());
  const std::string name = file.filename().string();
  std::error_code none;
  if (folder.look(name) != Entry::none && !std::filesystem::is_empty(file, none))
    folder.rename(name, name + ".other");
  const int descriptor = folder.open_file(name, O_RDWR | O_CREAT | O_APPEND);
  lock(descriptor, file);
  const AppendedFile::Moved moved = lines_->move_to(descriptor);
  if (moved.reason != 0) {
    close(descriptor);
    refuse(file, "write", moved.reason);
  }
  file_ = file;
  if (!moved.whole) chain_ = {};
  return moved.whole;
}

void RecordWriter::write(const spec::record::Event& event) {
  if (const int reason = lines_->append(chain_.line_of(spec::record::to_json(event)) + "\n"))
    refuse(file_, "write", reason);
}

void RecordWriter::sync(int times) {
  if (const int reason = lines_->sync(times)) refuse(file_, lines_->waiting() > 0 ? "write" : "save", reason);
}

}  // namespace assay::impl::logs
