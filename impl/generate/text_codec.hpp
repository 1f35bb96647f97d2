#pragma once
// Texts as token ids and back: by a tokenizer's file, or a token a byte.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::impl::generate {

struct WeightsPlace;

class TextCodec {
 public:
  virtual ~TextCodec() = default;
  /// Ids of a prompt, what the tokenizer puts in front of a text among them. Errors: UserError(usage).
  virtual std::vector<std::int64_t> encode(const std::string& text) const = 0;
  /// The bytes that a token stands for; none of a special token, or an id of no token.
  virtual std::string decode(std::int64_t id) const = 0;
};

/// The codec of a model: its tokenizer.json, of the first of place.folders that has one; else of a vocabulary
/// of 256 a token a byte. None: null, and `why` says so. Errors: UserError(bad_data) for a file that is no
/// tokenizer.
std::unique_ptr<TextCodec> codec_of(const WeightsPlace& place, std::string& why);

}  // namespace assay::impl::generate
