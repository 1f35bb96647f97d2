#pragma once
// A file that is read in pieces: only the pieces that are read are in memory.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "spec/error.hpp"
#include "spec/parallel/slice.hpp"

namespace assay::impl::checkpoint {

/// Errors of all: Unreadable naming path and reason.
class InputFile {
 public:
  class Unreadable : public UserError {
   public:
    explicit Unreadable(const std::string& what) : UserError(ExitCode::bad_data, what) {}
  };

  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  ///< when it was opened [B]
  /// The file's number, and when it was last changed [ns]: two processes that find the same ones have opened
  /// one file, also where their hosts have mounted its disk at different paths. No program can set the time.
  std::string identity() const { return identity_; }

  /// Fills `into` with the bytes from `position` on. Errors also where the file ends before.
  void read(std::uint64_t position, std::span<std::byte> into) const;

  /// content_hash of the bytes [begin, end).
  std::string hash(std::uint64_t begin, std::uint64_t end) const;

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string identity_;
};

/// Rectangle `wanted` of rectangle `stored` of a parameter, whose elements stand in the file row by row from
/// `first_byte` on: into `into`, `row_bytes` from one row to the next. Exactly its bytes are read. Errors:
/// Unreadable.
void read_slice(const InputFile& file, std::uint64_t first_byte, std::size_t element_bytes,
                const spec::Slice& stored, const spec::Slice& wanted, std::byte* into, std::size_t row_bytes);

}  // namespace assay::impl::checkpoint
