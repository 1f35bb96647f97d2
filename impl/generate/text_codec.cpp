#include "impl/generate/text_codec.hpp"

#include <string_view>

#include "spec/text/utf8.hpp"

namespace assay::impl::generate {

namespace {
constexpr const char* replacement = "\xEF\xBF\xBD";  ///< U+FFFD

/// The well-formed beginning of `bytes`, which is taken from it, with U+FFFD in place of what is not. Where
/// `more` may follow, what begins a character at the end is left.
std::string take_text(std::string& bytes, bool more) {
  std::string out;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view left = std::string_view(bytes).substr(at);
    if (more && spec::begins_character(left)) break;
    const std::size_t length = spec::utf8_length(left);
    out += length > 0 ? left.substr(0, length) : replacement;
    at += length > 0 ? length : spec::ill_formed_length(left);
  }
  bytes.erase(0, at);
  return out;
}
}  // namespace

std::string TextDecoder::end_of_run() {
  std::string out;
  if (spec::valid_utf8(run_) == run_)
    out = run_;
  else
    for (std::size_t i = 0; i < run_.size(); ++i) out += replacement;
  run_.clear();
  return out;
}

std::string TextDecoder::next(std::int64_t id) {
  const TokenText token = codec_.token(id);
  if (token.bytes.empty()) return "";
  switch (token.kind) {
    case TokenText::Kind::byte:
      run_ += token.bytes;
      return "";
    case TokenText::Kind::text:
      return end_of_run() + token.bytes;
    case TokenText::Kind::bytes:
      break;
  }
  held_ += token.bytes;
  return take_text(held_, true);
}

std::string TextDecoder::rest() { return end_of_run() + take_text(held_, false); }

std::string TextCodec::decode(const std::vector<std::int64_t>& ids) const {
  TextDecoder decoder(*this);
  std::string text;
  for (const std::int64_t id : ids) text += decoder.next(id);
  return text + decoder.rest();
}

}  // namespace assay::impl::generate
