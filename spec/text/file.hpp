#pragma once
// Files that are read, opened by name. Nothing that stands behind a name makes a reader wait or takes more
// memory than its kind of file deserves.
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

#include "spec/error.hpp"

namespace assay::spec {

/// Whether `name` is a name of a file in a folder: one part of a path, and no way out of it.
bool is_file_name(std::string_view name);

/// The longest file of a kind that is read. docs/running.md has the table.
struct FileLimit {
  std::string_view what;  ///< "a recipe"
  std::int64_t bytes;
};

namespace file_limits {
inline constexpr std::int64_t MiB = 1 << 20;
inline constexpr FileLimit recipe = {"a recipe", 16 * MiB};
inline constexpr FileLimit model = {"a model's file", 1 * MiB};
inline constexpr FileLimit tokenizer = {"a tokenizer.json", 256 * MiB};
inline constexpr FileLimit weight_index = {"an index of weights", 64 * MiB};
inline constexpr FileLimit manifest = {"a manifest.json", 256 * MiB};
inline constexpr FileLimit marker = {"COMMITTED", 64};
inline constexpr FileLimit token_facts = {"the .json beside token files", 64 * MiB};
inline constexpr FileLimit claims = {"a file of claims", 16 * MiB};
inline constexpr FileLimit waterfall = {"a waterfall.json", 16 * MiB};
inline constexpr FileLimit algorithms = {"a list of algorithms", 64 * MiB};
inline constexpr FileLimit all[] = {recipe, model,       tokenizer, weight_index, manifest,
                                    marker, token_facts, claims,    waterfall,    algorithms};
}  // namespace file_limits

/// A file that cannot be read: bad_data, "a/b.toml: it is a folder".
class FileFault : public UserError {
 public:
  enum class Kind { missing, not_readable, not_regular, too_long };
  FileFault(Kind kind, const std::filesystem::path& path, const std::string& why, int reason = 0)
      : UserError(ExitCode::bad_data, path.string() + ": " + why), kind_(kind), why_(why), reason_(reason) {}
  Kind kind() const { return kind_; }
  int reason() const { return reason_; }  ///< the system's (errno), 0 where it gave none
  /// What stands behind the file's name: "it is a folder", "Permission denied".
  const std::string& why() const { return why_; }

 private:
  Kind kind_;
  std::string why_;
  int reason_;
};

/// What may stand behind a name: a regular file alone, or also a pipe, a socket or a terminal, which are read
/// once and from front to back.
enum class Behind { regular_file, stream };

/// Opens a file for reading and gives its descriptor. Never waits, but a second for the writer of a pipe;
/// that of a stream does not block (O_NONBLOCK). Links are followed. Errors: FileFault.
int open_for_reading(const std::filesystem::path& path, Behind behind = Behind::regular_file);

/// The whole content of a file. Errors: FileFault.
std::string read_file(const std::filesystem::path& path, const FileLimit& limit,
                      Behind behind = Behind::regular_file);

/// A file as a stream. Reading that fails sets badbit.
class FileStream : public std::istream {
 public:
  /// Errors: FileFault.
  explicit FileStream(const std::filesystem::path& path, Behind behind = Behind::regular_file);
  ~FileStream() override;

 private:
  std::unique_ptr<std::streambuf> buffer_;
};

}  // namespace assay::spec
