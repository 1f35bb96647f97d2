#pragma once
// The hash of everything that is written down or compared by content.
#include <cstddef>
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

}  // namespace assay::spec
