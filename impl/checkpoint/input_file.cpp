#include "impl/checkpoint/input_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/machine/disk_call.hpp"
#include "impl/machine/patient_call.hpp"
#include "spec/text/file.hpp"

namespace assay::impl::checkpoint {

void InputFile::fail(const std::string& why) const {
  throw Unreadable("cannot read " + path_.string() + ": " + why);
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  try {
    descriptor_ = patiently([&] { return spec::open_for_reading(path_); });
  } catch (const spec::FileFault& fault) {
    fail(fault.why());
  }
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) {
    close(descriptor_);
    fail(std::strerror(errno));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  identity_ = std::to_string(status.st_ino) + ":" + std::to_string(status.st_ctim.tv_sec) + "." +
              std::to_string(status.st_ctim.tv_nsec);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      identity_(std::move(other.identity_)) {}

void InputFile::read(std::uint64_t position, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = patiently([&] {
      const DiskCall disk;
      return pread(descriptor_, into.data(), into.size(), static_cast<off_t>(position));
    });
    if (got < 0) fail(std::strerror(errno));
    if (got == 0) fail("ends at byte " + std::to_string(position));
    into = into.subspan(static_cast<std::size_t>(got));
    position += static_cast<std::uint64_t>(got);
  }
}

std::string InputFile::hash(std::uint64_t begin, std::uint64_t end) const {
  constexpr std::uint64_t piece_bytes = 4 << 20;
  std::vector<std::byte> piece(std::min(piece_bytes, end - begin));
  ContentHash hash;
  while (begin < end) {
    const std::span<std::byte> bytes =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), end - begin));
    read(begin, bytes);
    hash.add(bytes);
    begin += bytes.size();
  }
  return hash.hex();
}

void read_slice(const InputFile& file, std::uint64_t first_byte, std::size_t element_bytes,
                const spec::Slice& stored, const spec::Slice& wanted, std::byte* into,
                std::size_t row_bytes) {
  const spec::Slice at = spec::relative(wanted, stored);
  const std::uint64_t element = element_bytes,
                      stored_row = static_cast<std::uint64_t>(stored.columns) * element,
                      wanted_row = static_cast<std::uint64_t>(wanted.columns) * element;
  const std::uint64_t first = first_byte + static_cast<std::uint64_t>(at.row) * stored_row +
                              static_cast<std::uint64_t>(at.column) * element;
  // Rows that are neighbours on both sides are one piece.
  const bool one = wanted.rows == 1 || (wanted_row == stored_row && wanted_row == row_bytes);
  const auto pieces = static_cast<std::uint64_t>(one ? 1 : wanted.rows);
  const std::uint64_t piece = static_cast<std::uint64_t>(wanted.rows) / pieces * wanted_row;
  for (std::uint64_t i = 0; i < pieces; ++i)
    file.read(first + i * stored_row, {into + i * row_bytes, static_cast<std::size_t>(piece)});
}

}  // namespace assay::impl::checkpoint
