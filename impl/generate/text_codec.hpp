#pragma once
// Texts as token ids and back: by a tokenizer's file, or a token a byte.
#include <cstdint>
#include <string>
#include <vector>

namespace assay::impl::generate {

/// What a token stands for, before texts are made of several.
struct TokenText {
  enum class Kind {
    bytes,  ///< some bytes of the text
    byte,   ///< one byte of a character that the vocabulary does not have
    text    ///< whole characters
  };
  std::string bytes;  ///< empty: of a special token, or an id of no token
  Kind kind = Kind::bytes;
};

class TextCodec {
 public:
  virtual ~TextCodec() = default;
  /// Ids of a prompt, what the tokenizer puts in front of a text among them. Errors: UserError(usage).
  virtual std::vector<std::int64_t> encode(const std::string& text) const = 0;
  virtual TokenText token(std::int64_t id) const = 0;
  /// The text of the tokens, as TextDecoder gives it.
  std::string decode(const std::vector<std::int64_t>& ids) const;
};

/// Well-formed UTF-8 of tokens that come one by one, as the package tokenizers gives it of all (its decoders
/// ByteLevel and ByteFallback, without taking away a first blank): of bytes U+FFFD in place of each piece
/// that is ill-formed, and of a run of single bytes that is ill-formed anywhere one for each of them. What a
/// later token may still change is held back.
class TextDecoder {
 public:
  explicit TextDecoder(const TextCodec& codec) : codec_(codec) {}
  std::string next(std::int64_t id);
  std::string rest();  ///< what is held back, when no token follows

 private:
  std::string end_of_run();

  const TextCodec& codec_;
  std::string held_;  ///< bytes that begin a character
  std::string run_;   ///< single bytes, one behind the other
};

}  // namespace assay::impl::generate
