#pragma once
// The hash of everything that is written down or compared by content.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace assay::spec {

/// XXH3-128 of bytes given in pieces, as 32 hexadecimal digits.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string content_hash(std::span<const std::byte> bytes);

/// Of a file of `bytes` bytes, which `read` reads from a position on: the hash of 16 pieces of 16 KiB, spread
/// evenly from its first byte to its last, or of all of it where it is shorter than these.
std::string sample_hash(std::uint64_t bytes,
                        const std::function<void(std::uint64_t position, std::span<std::byte> into)>& read);

}  // namespace assay::spec
