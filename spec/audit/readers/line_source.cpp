#include "spec/audit/readers/line_source.hpp"

#include <algorithm>
#include <cstring>

#include "spec/audit/readers/last_part.hpp"
#include "spec/audit/readers/odd_characters.hpp"
#include "spec/audit/readers/rank_prefix.hpp"
#include "spec/error.hpp"

namespace assay::spec::audit {

Blocks::Blocks(std::istream& in, std::string origin)
    : in_(in), origin_(std::move(origin)), buffer_(new char[capacity_]) {}

bool Blocks::more() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (!in_.good()) return false;
  if (end_ + block > capacity_) {  // a line longer than a block
    capacity_ = longest + block;
    std::unique_ptr<char[]> larger(new char[capacity_]);
    std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
  }
  in_.read(buffer_.get() + end_, static_cast<std::streamsize>(block));
  const auto got = static_cast<std::size_t>(in_.gcount());
  if (in_.bad())
    throw UserError(ExitCode::bad_data, origin_ + ": reading failed after " + std::to_string(read_) +
                                            " bytes; check the disk or the pipe and read it again");
  end_ += got;
  read_ += static_cast<std::int64_t>(got);
  if (first_ && got > 0) {
    first_ = false;
    if (rest().starts_with("\xef\xbb\xbf")) begin_ = 3;
  }
  return got > 0;
}

namespace {

constexpr std::string_view code_indent = "    ";  // of a block of code in Markdown

/// Whether all lines are indented that hold anything.
bool all_indented(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.starts_with(code_indent) && line.find_first_not_of(" \t\r") != std::string_view::npos &&
        line.size() < text.size())
      return false;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return true;
}

/// Domain: all lines are indented that hold anything.
std::string without_code_indent(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n') + 1);
    if (line.empty()) line = text;
    text.remove_prefix(line.size());
    out += line.substr(line.starts_with(code_indent) ? code_indent.size() : 0);
  }
  return out;
}

}  // namespace

Lines::Lines(Blocks& blocks, bool rows) : blocks_(blocks) {
  // Colours whose escape byte was lost when the log was pasted somewhere.
  for (const std::string_view colour : {"[39m", "[0m", "[31m", "[32m"})
    bare_colours_ = bare_colours_ || blocks.rest().find(colour) != std::string_view::npos;
  numbered_ = numbers_its_lines(blocks_.rest());
  indented_ = all_indented(blocks_.rest());
  ends_ = indented_ ? line_ends(without_code_indent(blocks_.rest()), rows) : line_ends(blocks_.rest(), rows);
  cut_.column = static_cast<std::int64_t>(ends_.column);
  look_over();
}

/// Whether any line of what is read needs cleaning: asked once per block, not once per line.
void Lines::look_over() {
  const std::string_view all = blocks_.rest();
  // A line that is joined may have begun before what is read now.
  plain_ = !ends_.wrapped && !bare_colours_ && !std::memchr(all.data(), '\x1b', all.size()) &&
           !std::memchr(all.data(), '\r', all.size()) && !std::memchr(all.data(), '\0', all.size()) &&
           !may_be_odd(all);
}

/// The next line with all that is in it, without its line end.
bool Lines::next_raw(std::string_view& raw) {
  overlong_ = false;
  while (true) {
    const std::string_view rest = blocks_.rest();
    const void* end =
        rest.size() > scanned_ ? std::memchr(rest.data() + scanned_, '\n', rest.size() - scanned_) : nullptr;
    if (end) {
      raw = rest.substr(0, static_cast<std::size_t>(static_cast<const char*>(end) - rest.data()));
      blocks_.take(raw.size() + 1);
      break;
    }
    scanned_ = rest.size();
    if (rest.size() >= Blocks::longest) {
      // The rest of an overlong line is passed over.
      if (!overlong_) scratch_.assign(rest.substr(0, Blocks::block));
      overlong_ = true;
      blocks_.take(rest.size());
      scanned_ = 0;
    }
    if (blocks_.more()) {
      look_over();
      continue;
    }
    raw = blocks_.rest();
    blocks_.take(raw.size());
    scanned_ = 0;
    if (raw.empty() && !overlong_) return false;
    complete_ = false;
    truncated_ = true;
    break;
  }
  scanned_ = 0;
  ++number_;
  if (overlong_) raw = scratch_;
  if (indented_ && raw.starts_with(code_indent)) raw.remove_prefix(code_indent.size());
  return true;
}

namespace {

/// Bytes of the escape sequence that `text` starts with.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    std::size_t at = 2;
    while (at < text.size() && (text[at] < 0x40 || text[at] > 0x7e)) ++at;
    return std::min(at + 1, text.size());
  }
  if (text[1] == ']') {
    std::size_t at = 2;
    while (at < text.size() && text[at] != '\a' && text[at] != '\x1b') ++at;
    if (at < text.size() && text[at] == '\x1b') ++at;
    return std::min(at + 1, text.size());
  }
  return 2;
}

/// Bytes of a colour like "[38;5;214m" that `text` starts with, 0 when there is none.
std::size_t bare_colour_length(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && at < 16 && ((text[at] >= '0' && text[at] <= '9') || text[at] == ';')) ++at;
  return at > 1 && at < text.size() && text[at] == 'm' ? at + 1 : 0;
}

}  // namespace

std::string_view Lines::clean(std::string_view raw) {
  if (plain_) return raw;
  const bool dirty = bare_colours_ || std::memchr(raw.data(), '\x1b', raw.size()) ||
                     std::memchr(raw.data(), '\0', raw.size());
  if (raw.empty()) return raw;
  if (may_be_odd(raw)) {
    plain_line_ = with_plain_characters(raw);
    raw = plain_line_;
  }
  if (!dirty) return raw;
  std::string out;
  out.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    if (raw[at] == '\x1b') {
      at += escape_length(raw.substr(at));
    } else if (const std::size_t colour =
                   raw[at] == '[' && bare_colours_ ? bare_colour_length(raw.substr(at)) : 0) {
      at += colour;
    } else {
      if (raw[at] != '\0') out += raw[at];
      ++at;
    }
  }
  scratch_ = std::move(out);
  return scratch_;
}

/// The next line as it was printed: with what it was wrapped into.
bool Lines::next_whole(std::string_view& raw) {
  full_ = false;
  if (ends_.wrapped) {
    if (!ahead_) {
      if (!next_raw(raw)) return false;
      ahead_ = raw;
    }
    begun_ = number_, whole_ = complete_, long_ = overlong_;
    joined_ = *ahead_;
    ahead_.reset();
    full_ = ends_.full(joined_);
    while (whole_ && next_raw(raw)) {
      if (!full_ || long_ || overlong_ || !ends_.goes_on(raw) ||
          joined_.size() + raw.size() > Blocks::block) {
        ahead_ = raw;
        break;
      }
      const std::size_t blank = std::min(raw.find_first_not_of(' '), raw.size());
      joined_ += raw.substr(std::min(blank, ends_.indent));
      full_ = ends_.full(raw), whole_ = complete_;
      ++cut_.joined;
    }
    raw = joined_;
    return true;
  }
  if (!next_raw(raw)) return false;
  begun_ = number_, whole_ = complete_, long_ = overlong_;
  full_ = ends_.column > 0 && ends_.full(raw);
  return true;
}

/// What stands last in a line that is cut may be the first digits of a number.
void Lines::take_cut_end(Line& line) {
  const char last = line.text.back();
  if (!(full_ && number_may_go_on(line.text)) &&
      ((last != '.' && last != '\xa6') || !ends_in_ellipsis(line.text)))
    return;
  if (cut_.count++ == 0) cut_.line = line.number;
  line.text = without_last_part(line.text);
  line.cut = true;
}

bool Lines::piece(Line& line) {
  while (!pieces_.empty()) {
    const std::size_t end = std::min(pieces_.find('\r'), pieces_.size());
    line.text = pieces_.substr(0, end);
    pieces_.remove_prefix(std::min(end + 1, pieces_.size()));
    if (line.text.empty()) continue;
    line.number = begun_;
    line.complete = whole_ || !pieces_.empty();
    line.overlong = long_;
    line.cut = false;
    take_cut_end(line);
    line.rank = take_rank(line.text, numbered_);
    return true;
  }
  return false;
}

bool Lines::next(Line& line) {
  while (!piece(line)) {
    std::string_view raw;
    if (!next_whole(raw)) return false;
    if (plain_ && !long_ && !raw.empty()) {
      line = {raw, begun_, -1, whole_, false, false};
      take_cut_end(line);
      line.rank = take_rank(line.text, numbered_);
      return true;
    }
    pieces_ = clean(raw);
  }
  return true;
}

}  // namespace assay::spec::audit
