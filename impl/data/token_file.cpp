#include "impl/data/token_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "impl/machine/disk_call.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {
namespace {

[[noreturn]] void fail(ExitCode code, const std::filesystem::path& path, const std::string& what) {
  throw UserError(code, "token file " + spec::quote(path.string()) + " " + what);
}

std::uint32_t little_endian(const unsigned char* bytes, std::int64_t width) {
  std::uint32_t value = 0;
  for (std::int64_t i = width; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

TokenType token_type(std::string_view name) {
  if (name == "uint16") return TokenType::uint16;
  if (name == "uint32") return TokenType::uint32;
  throw UserError(ExitCode::usage,
                  "the dtype of token files is " + spec::quote(name) + "; state \"uint16\" or \"uint32\"");
}

std::string_view name(TokenType type) { return type == TokenType::uint16 ? "uint16" : "uint32"; }

std::int64_t width(TokenType type) { return type == TokenType::uint16 ? 2 : 4; }

TokenFile::TokenFile(std::filesystem::path path, TokenType type, std::int64_t vocabulary)
    : path_(std::move(path)), type_(type), vocabulary_(vocabulary) {
  if (vocabulary < 1 || vocabulary > std::int64_t{1} << 31)
    throw UserError(ExitCode::usage,
                    "a vocabulary of " + std::to_string(vocabulary) +
                        " tokens is outside 1 .. 2147483648; correct the model's vocabulary");
  // O_NONBLOCK: opening a pipe by mistake must fail below and not wait for a writer.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0)
    fail(ExitCode::io, path_,
         std::string("cannot be opened: ") + std::strerror(errno) + "; check the path and its permissions");
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  const std::int64_t bytes = status.st_size;
  std::string trouble;
  if (!known || !S_ISREG(status.st_mode))
    trouble = "is not a regular file; name the file of tokens itself";
  else if (bytes == 0)
    trouble = "is empty; write it again, or take it off the list";
  else if (bytes % width(type_) != 0)
    trouble = "has " + std::to_string(bytes) + " bytes, which is no multiple of the " +
              std::to_string(width(type_)) + " of a " + std::string(name(type_)) +
              "; it was cut off, or the stated dtype is not its own";
  if (!trouble.empty()) {
    ::close(descriptor_);
    fail(ExitCode::bad_data, path_, trouble);
  }
  tokens_ = bytes / width(type_);
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      type_(other.type_),
      vocabulary_(other.vocabulary_),
      tokens_(other.tokens_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

TokenFile::~TokenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TokenFile::read_bytes(std::int64_t offset, std::span<unsigned char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = [&] {
      const DataCall data;
      return ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    }();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      fail(ExitCode::io, path_,
           "cannot be read at byte " + std::to_string(offset) + ": " + std::strerror(errno) +
               "; check the disk or the network file system");
    if (got == 0)
      fail(ExitCode::bad_data, path_,
           "ends at byte " + std::to_string(offset) + " but had " + std::to_string(tokens_ * width(type_)) +
               " bytes when it was opened; another program has shortened it");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

std::int32_t TokenFile::checked(std::uint32_t id, std::int64_t token) const {
  if (id >= vocabulary_)
    fail(ExitCode::bad_data, path_,
         "has id " + std::to_string(id) + " at token " + std::to_string(token) + " (byte offset " +
             std::to_string(token * width(type_)) + "), outside the vocabulary of " +
             std::to_string(vocabulary_) + "; it was made for another vocabulary, or its dtype is not " +
             std::string(name(type_)));
  return static_cast<std::int32_t>(id);
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> ids) const {
  const auto count = static_cast<std::int64_t>(ids.size());
  if (first < 0 || count > tokens_ || first > tokens_ - count)
    throw std::out_of_range("tokens " + std::to_string(first) + " + " + std::to_string(count) + " of " +
                            std::to_string(tokens_));
  std::array<unsigned char, 1 << 16> buffer;  // a multiple of both widths
  const std::int64_t step = static_cast<std::int64_t>(buffer.size()) / width(type_);
  for (std::int64_t done = 0; done < count; done += step) {
    const std::int64_t now = std::min(step, count - done);
    const std::span<unsigned char> bytes(buffer.data(), static_cast<std::size_t>(now * width(type_)));
    read_bytes((first + done) * width(type_), bytes);
    for (std::int64_t i = 0; i < now; ++i)
      ids[static_cast<std::size_t>(done + i)] = checked(
          little_endian(&bytes[static_cast<std::size_t>(i * width(type_))], width(type_)), first + done + i);
  }
}

void TokenFile::verify() const {
  constexpr std::int64_t step = 1 << 20;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(step, tokens_)));
  for (std::int64_t first = 0; first < tokens_; first += step)
    read(first, std::span(ids).first(static_cast<std::size_t>(std::min(step, tokens_ - first))));
}

}  // namespace assay::impl::data
