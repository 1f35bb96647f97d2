#pragma once
// One raw token file: little-endian unsigned integers, no header. The dtype is stated, never guessed.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace assay::impl::data {

enum class TokenType { uint16, uint32 };

/// "uint16" or "uint32". Errors: UserError usage, naming the two.
TokenType token_type(std::string_view name);
std::string_view name(TokenType type);
std::int64_t width(TokenType type);  ///< [bytes] of a token

/// A token file opened for reading, at any size (offsets have 64 bits).
///
/// It is read with pread and not mapped: a mapped file that is shortened by another program while it is read
/// kills the process with SIGBUS, and a read error of the disk does too. pread reports both, as errors with a
/// name. A sample is a few kilobytes in a row, read on the loader's thread, so the one copy more is not what
/// a step waits for.
class TokenFile {
 public:
  /// `vocabulary`: ids must be below it; 1 .. 2^31 (a uint16 file may have a larger vocabulary than it can
  /// name). Errors: UserError io (missing, unreadable), bad_data (no regular file, empty, size not a multiple
  /// of the width), usage (vocabulary outside the domain).
  TokenFile(std::filesystem::path path, TokenType type, std::int64_t vocabulary);
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t tokens() const { return tokens_; }  ///< when it was opened

  /// Reads tokens [first, first + ids.size()). Errors: UserError bad_data (an id outside the vocabulary,
  /// naming file, token, byte offset and id; the file became shorter), io (the system cannot read);
  /// std::out_of_range (a bug).
  void read(std::int64_t first, std::span<std::int32_t> ids) const;

  /// Reads every token once. Errors: those of read, for the first token that fails.
  void verify() const;

 private:
  void read_bytes(std::int64_t offset, std::span<unsigned char> bytes) const;
  std::int32_t checked(std::uint32_t id, std::int64_t token) const;

  std::filesystem::path path_;
  TokenType type_;
  std::int64_t vocabulary_;
  std::int64_t tokens_ = 0;
  int descriptor_ = -1;
};

}  // namespace assay::impl::data
