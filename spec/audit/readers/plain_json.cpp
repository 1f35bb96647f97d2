#include "spec/audit/readers/plain_json.hpp"

#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/odd_characters.hpp"

namespace assay::spec::audit {

void PlainJson::within_text(std::string_view raw, int plain, Quote quote) {
  if (escaped_) {
    escaped_ = false;
    out_ += quote == open_ ? std::string_view("\"") : raw;
  } else if (raw == "\\") {
    escaped_ = true;
    out_ += '\\';
  } else if (quote == open_) {
    open_ = Quote::none;
    out_ += '"';
  } else if (quote == Quote::straight) {
    out_ += "\\\"";
  } else if (plain > 0 && plain != '"' && plain != '\'' && plain != '\\') {
    out_ += static_cast<char>(plain);
  } else if (plain >= 0) {
    out_ += raw;
  }
}

/// Takes bytes from the beginning of `text`, and gives how many; unless it is the last, those of a character
/// that may go on stay.
std::size_t PlainJson::take(std::string_view text, bool last) {
  constexpr std::size_t longest = 8;  // of a character, or an entity of HTML
  const std::size_t all = text.size();
  for (std::size_t size = 1; !text.empty(); text.remove_prefix(size)) {
    size = 1;
    const bool ascii = static_cast<unsigned char>(text[0]) < 0x80, entity = text[0] == '&';
    if ((!ascii || entity) && !last && text.size() < longest) break;
    const int plain = !ascii || entity ? plain_at(text, true, true, size) : 0;
    const std::string_view raw = text.substr(0, size);
    const Quote quote = raw == "\""    ? Quote::straight
                        : plain != '"' ? Quote::none
                        : entity       ? Quote::entity
                                       : Quote::typographic;
    if (raw == "\n") open_ = Quote::none, escaped_ = false;  // no text goes on behind a line
    if (open_ != Quote::none) {
      within_text(raw, plain, quote);
      continue;
    }
    open_ = quote;
    if (plain > 0)
      out_ += static_cast<char>(plain);
    else if (plain == 0)
      out_ += raw;
  }
  return all - text.size();
}

PlainJson::int_type PlainJson::underflow() {
  out_.clear();
  while (out_.empty()) {
    blocks_->take(take(blocks_->rest(), false));
    if (out_.empty() && !blocks_->more()) {
      blocks_->take(take(blocks_->rest(), true));
      break;
    }
  }
  if (out_.empty()) return traits_type::eof();
  setg(out_.data(), out_.data(), out_.data() + out_.size());
  return traits_type::to_int_type(out_[0]);
}

std::string PlainJson::of(std::string_view text) {
  PlainJson plain;
  plain.take(text, true);
  return plain.out_;
}

bool odd_json(std::string_view start) {
  constexpr std::size_t beginning = 256;
  return shape_of(PlainJson::of(start.substr(0, beginning))) != LogShape::text && may_be_odd(start) &&
         PlainJson::of(start) != start;
}

}  // namespace assay::spec::audit
