#include "spec/checkpoint/content_hash.hpp"

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

}  // namespace assay::spec
