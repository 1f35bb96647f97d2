#include "spec/audit/readers/line_shape.hpp"

#include <algorithm>
#include <cctype>

#include "spec/audit/readers/line_shape_number.hpp"

namespace assay::spec::audit {
namespace {

bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Bytes of the quoted text of JSON, or of Python, that starts at `at`.
std::size_t quoted_length(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size()) - at;
}

/// Whether what stands before `at` makes a value of what follows.
bool behind_colon(std::string_view text, std::size_t at) {
  while (at > 0 && (quick::blank(text[at - 1]) || text[at - 1] == '\n')) --at;
  return at > 0 && text[at - 1] == ':';
}

}  // namespace

void LineShapes::learn(std::string_view text, const TakenNumbers& taken) {
  // A log whose lines are all different is not learned line by line.
  if (text.size() < 8 || text.size() > longest || ++learned_ > 256 + read_) return;
  Shape shape;
  std::size_t begin = 0, found = 0,
              closing = 0;  // where the text before the next number begins; where a quote ends
  for (std::size_t at = 0; at < text.size();) {
    const auto number =
        std::find_if(taken.begin(), taken.end(), [&](const auto& n) { return n.at == text.data() + at; });
    const bool known = number != taken.end();
    const char c = text[at];
    if (!known && notation_ == Notation::json && (c == '"' || c == '\'') && at != closing) {
      const std::size_t length = quoted_length(text, at);
      const bool value = behind_colon(text, at);
      closing = at + length - 1;
      at += value ? 1 : length;
      continue;
    }
    const bool sign = c == '-' || (c == '+' && notation_ == Notation::text);
    const bool signed_number = sign && at + 1 < text.size() && quick::digit(text[at + 1]);
    if (!known && !((quick::digit(c) || signed_number) && (at == 0 || !of_word(text[at - 1])))) {
      // The rest of a word's digits are its own.
      ++at;
      while (at < text.size() && of_word(text[at - 1]) && quick::digit(text[at])) ++at;
      continue;
    }
    const char *stop = text.data() + at, *const end = text.data() + text.size();
    Piece piece;
    if (known) {
      piece.taken = true, ++found;
      piece.field = number->field, piece.written = number->written;
      piece.kind = number->kind, piece.unit = number->unit;
      Step ignored;
      if (!this->number(piece, stop, end, 0, ignored)) return;
      piece.digits = piece.field == Field::step && std::all_of(text.data() + at, stop, quick::digit);
    } else if (!pass(stop, end)) {
      ++at;
      continue;
    }
    std::string_view before = text.substr(begin, at - begin);
    // Tabs separate columns: each of them counts.
    piece.blanks = before.ends_with(' ');
    while (before.ends_with("  ")) before.remove_suffix(1);
    piece.begin = static_cast<std::uint32_t>(shape.text.size());
    piece.size = static_cast<std::uint32_t>(before.size());
    shape.breaks += static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
    piece.breaks = shape.breaks;
    shape.text += before;
    shape.pieces.push_back(piece);
    begin = at = static_cast<std::size_t>(stop - text.data());
  }
  if (found != static_cast<std::size_t>(taken.end() - taken.begin())) return;
  shape.end = static_cast<std::uint32_t>(shape.text.size());
  for (const Piece& piece : shape.pieces)
    if (piece.taken) shape.fields |= std::uint32_t{1} << static_cast<int>(piece.field);
  const std::string_view rest = text.substr(begin);
  shape.breaks += static_cast<std::uint32_t>(std::count(rest.begin(), rest.end(), '\n'));
  shape.text += rest;
  if (shapes_.size() < most) {
    shapes_.push_back(std::move(shape));
    last_ = shapes_.size() - 1;
  } else {
    shapes_[last_ = oldest_] = std::move(shape);
    oldest_ = (oldest_ + 1) % most;
  }
}

bool LineShapes::matches(const Shape& shape, const char*& at, const char* end, std::int64_t line,
                         Step& step) const {
  const char* const text = shape.text.data();
  for (const Piece& piece : shape.pieces) {
    if (!quick::pass_text(at, end, text + piece.begin, piece.size, piece.blanks)) return false;
    if (piece.taken ? !number(piece, at, end, line + piece.breaks, step) : !pass(at, end)) return false;
  }
  const std::size_t rest = shape.text.size() - shape.end;
  if (static_cast<std::size_t>(end - at) < rest || !quick::same(at, text + shape.end, rest)) return false;
  at += rest;
  return true;
}

std::size_t LineShapes::read(std::string_view text, std::int64_t line, Step& step, bool whole) {
  if (text.size() < 8) return 0;
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t which = last_ + i < shapes_.size() ? last_ + i : last_ + i - shapes_.size();
    if (!begins_alike(shapes_[which], text)) continue;
    const char* at = text.data();
    if (matches(shapes_[which], at, end, line, step) && (!whole || at == end)) {
      last_ = which;
      ++read_;
      breaks_ = shapes_[which].breaks;
      fields_ = shapes_[which].fields;
      return static_cast<std::size_t>(at - text.data());
    }
    for (const Piece& piece : shapes_[which].pieces)
      if (piece.taken) step[piece.field].reset();
  }
  return 0;
}

void LineShapes::learn(const Line& line, const TakenNumbers& taken) {
  if (line.complete && !line.overlong) learn(line.text, taken);
}

bool LineShapes::read(const Line& line, Step& step) {
  return line.complete && !line.overlong && read(line.text, line.number, step) != 0;
}

}  // namespace assay::spec::audit
