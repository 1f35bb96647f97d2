#include "spec/checkpoint/content_hash.hpp"

#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace assay::spec {

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
ContentHash::~ContentHash() = default;
void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string ContentHash::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  std::string text;
  for (unsigned char byte : canonical.digest) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

std::string content_hash(std::span<const std::byte> bytes) {
  ContentHash hash;
  hash.add(bytes);
  return hash.hex();
}

std::string sample_hash(std::uint64_t bytes,
                        const std::function<void(std::uint64_t position, std::span<std::byte> into)>& read) {
  constexpr std::uint64_t pieces = 16, piece = 16 << 10;
  ContentHash hash;
  std::vector<std::byte> buffer(bytes <= pieces * piece ? bytes : piece);
  // A short file is one piece.
  const std::uint64_t count = buffer.size() == bytes ? 1 : pieces, room = bytes - buffer.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    read(room / (pieces - 1) * i + room % (pieces - 1) * i / (pieces - 1), buffer);
    hash.add(buffer);
  }
  return hash.hex();
}

}  // namespace assay::spec
