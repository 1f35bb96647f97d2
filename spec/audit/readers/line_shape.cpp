#include "spec/audit/readers/line_shape.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>

#include "spec/audit/digits.hpp"
#include "spec/audit/shortest.hpp"

namespace assay::spec::audit {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool blank(char c) { return c == ' ' || c == '\t'; }
bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether the bytes are the same; quick for the few that stand between numbers.
bool same(const char* a, const char* b, std::size_t size) {
  const auto eight = [&](std::size_t at) {
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, a + at, 8);
    std::memcpy(&y, b + at, 8);
    return x == y;
  };
  if (size >= 8) {
    for (std::size_t at = 0; at + 8 < size; at += 8)
      if (!eight(at)) return false;
    return eight(size - 8);
  }
  if (size >= 4) {
    std::uint32_t x = 0, y = 0, u = 0, v = 0;
    std::memcpy(&x, a, 4);
    std::memcpy(&y, b, 4);
    std::memcpy(&u, a + size - 4, 4);
    std::memcpy(&v, b + size - 4, 4);
    return x == y && u == v;
  }
  for (std::size_t at = 0; at < size; ++at)
    if (a[at] != b[at]) return false;
  return true;
}

/// Takes ",123" behind one to three digits, once or twice. False where what follows is grouped in another
/// way.
bool take_groups(const char*& now, const char* end, int before, std::uint64_t& digits) {
  for (int groups = 0; now != end && *now == ',' && end - now > 1 && digit(now[1]); ++groups) {
    const EightBytes group(now + 1, end);
    if (group.count() != 3 || before > 3 || groups == 2) return false;
    digits = digits * 1000 + group.value();
    now += 4;
  }
  return now == end || *now != '_';
}

/// Takes "e-05". False where it has another number of digits than two.
bool take_short_exponent(const char*& now, const char* end, int& exponent) {
  if (end - now < 4 || (now[1] != '-' && now[1] != '+')) return false;
  if (!digit(now[2]) || !digit(now[3]) || (end - now > 4 && digit(now[4]))) return false;
  exponent = (now[2] - '0') * 10 + (now[3] - '0');
  if (now[1] == '-') exponent = -exponent;
  now += 4;
  return true;
}

/// take_plain for most numbers: up to seven digits, a point, up to seven more. False, and both as they were,
/// for the others. Domain: at least eight bytes that may be read stand before `end`.
[[gnu::always_inline]] inline bool take_short(const char*& at, const char* end, bool measured, double unit,
                                              bool groups, std::int64_t line, Printed& out) {
  if (at == end) return false;
  const bool negative = *at == '-';
  const char* now = at + negative;
  if (now == end) return false;
  const EightBytes whole(now, end);
  if (whole.count() == 0 || whole.count() == 8) return false;
  std::uint64_t digits = whole.value();
  now += whole.count();
  if (groups && now != end && (*now == ',' || *now == '_') && !take_groups(now, end, whole.count(), digits))
    return false;
  int behind_point = 0, exponent = 0;
  if (now != end && *now == '.') {
    if (++now == end) return false;
    const EightBytes fraction(now, end);
    behind_point = fraction.count();
    if (behind_point == 0 || behind_point == 8) return false;
    digits = digits * EightBytes::powers[behind_point] + fraction.value();
    now += behind_point;
    measured = true;
  }
  const auto magnitude = static_cast<double>(static_cast<std::int64_t>(digits));
  const double number = negative ? -magnitude : magnitude;
  double value = 0, half = inverse_powers_of_ten[behind_point];
  if (now != end && (*now == 'e' || *now == 'E')) {
    if (!take_short_exponent(now, end, exponent)) return false;
    const int power = exponent - behind_point;
    if (power < -22 || power > 22) return false;
    value = (power < 0 ? number / powers_of_ten[-power] : number * powers_of_ten[power]) * unit;
    half = power < 0 ? inverse_powers_of_ten[-power] : powers_of_ten[power];
    measured = true;
  } else {
    value = number / powers_of_ten[behind_point] * unit;
  }
  if (!(std::abs(value) < 1e300)) return false;
  half = measured ? 0.5 * half * std::abs(unit) : 0;
  out = {value, value - half, value + half, line};
  at = now;
  return true;
}

/// Bytes of the quoted text of JSON, or of Python, that starts at `at`.
std::size_t quoted_length(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size()) - at;
}

/// Whether what stands before `at` makes a value of what follows.
bool behind_colon(std::string_view text, std::size_t at) {
  while (at > 0 && (blank(text[at - 1]) || text[at - 1] == '\n')) --at;
  return at > 0 && text[at - 1] == ':';
}

}  // namespace

[[gnu::always_inline]] inline bool LineShapes::number(const Piece& piece, const char*& at, const char* end,
                                                      std::int64_t line, Step& step) const {
  auto& field = step[piece.field];
  Printed& out = field.emplace();
  if (piece.written == Written::shortest) return take_shortest(at, end, piece.unit, line, out);
  const bool groups = piece.written == Written::printed && notation_ == Notation::text;
  const bool measured = piece.kind == Kind::measured;
  if (notation_ == Notation::json) {  // "+1", "1." and "1,000" are no numbers there
    const char* stop = at;
    return pass_number(stop, end) && take_plain(at, end, piece.kind, piece.unit, line, out, groups) &&
           at == stop;
  }
  return (EightBytes::possible && take_short(at, end, measured, piece.unit, groups, line, out)) ||
         take_plain(at, end, piece.kind, piece.unit, line, out, groups);
}

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
    const bool signed_number = sign && at + 1 < text.size() && digit(text[at + 1]);
    if (!known && !((digit(c) || signed_number) && (at == 0 || !of_word(text[at - 1])))) {
      // The rest of a word's digits are its own.
      ++at;
      while (at < text.size() && of_word(text[at - 1]) && digit(text[at])) ++at;
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
    } else if (!pass(stop, end)) {
      ++at;
      continue;
    }
    std::string_view before = text.substr(begin, at - begin);
    piece.blanks = !before.empty() && blank(before.back());
    while (before.size() > 1 && blank(before.back()) && blank(before[before.size() - 2]))
      before.remove_suffix(1);
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

/// A number that no field takes.
bool LineShapes::pass(const char*& at, const char* end) const {
  if (notation_ == Notation::text && at != end && *at == '+') ++at;
  return pass_number(at, end);
}

bool LineShapes::matches(const Shape& shape, const char*& at, const char* end, std::int64_t line,
                         Step& step) const {
  const char* const text = shape.text.data();
  for (const Piece& piece : shape.pieces) {
    if (static_cast<std::size_t>(end - at) <= piece.size || !same(at, text + piece.begin, piece.size))
      return false;
    at += piece.size;
    if (piece.blanks)
      while (at != end && blank(*at)) ++at;
    if (piece.taken ? !number(piece, at, end, line + piece.breaks, step) : !pass(at, end)) return false;
  }
  const std::size_t rest = shape.text.size() - shape.end;
  if (static_cast<std::size_t>(end - at) < rest || !same(at, text + shape.end, rest)) return false;
  at += rest;
  return true;
}

namespace {

/// Passes over digits; gives how many there are. Domain: as EightBytes, but for `at` = `end`.
[[gnu::always_inline]] inline std::ptrdiff_t pass_digits(const char*& at, const char* end) {
  const char* const from = at;
  while (at != end) {
    const int count = EightBytes(at, end).count();
    at += count;
    if (count < 8) break;
  }
  return at - from;
}

/// Passes over a number that is finite, and whose text says that it is not below 0.
[[gnu::always_inline]] inline bool pass_short(const char*& at, const char* end, bool groups) {
  constexpr std::ptrdiff_t longest = 24;  // of a number that is finite for sure
  const char* now = at;
  const std::ptrdiff_t whole = pass_digits(now, end);
  if (whole == 0) return false;
  if (groups && now != end && (*now == ',' || *now == '_')) {
    std::uint64_t digits = 0;
    if (whole > 3 || !take_groups(now, end, static_cast<int>(whole), digits)) return false;
  }
  if (now != end && *now == '.' && (++now, pass_digits(now, end)) == 0) return false;
  if (int exponent = 0;
      now != end && (*now == 'e' || *now == 'E') && !take_short_exponent(now, end, exponent))
    return false;
  if (now - at > longest) return false;
  at = now;
  return true;
}

/// Whether no number of that many digits, of which `text` shows one, is above 1 in that unit, and is
/// written without an exponent. `first`: as long as it begins with the digit 0.
bool never_above_one(std::string_view text, double unit, bool& first) {
  const std::size_t whole = std::min(text.find('.'), text.size());
  if (whole == 0 || whole > 3 || text.find_first_not_of("0123456789.") != std::string_view::npos)
    return false;
  first = whole == 1 && text[0] == '0' && unit == 1;
  return unit > 0 && (first || powers_of_ten[whole] * unit <= 1);
}

}  // namespace

/// Goes over a line as `matches` does; fills in what `layout` says of its numbers.
bool LineShapes::glanced(const Shape& shape, std::string_view line, Layout& layout, char* digits) const {
  const char *const text = shape.text.data(), *at = line.data(), *const end = at + line.size();
  Step ignored;
  layout.wanted.clear();
  layout.step_digits = 0;
  const auto place = [&](const char* byte) { return static_cast<std::uint32_t>(byte - line.data()); };
  const auto mark = [&](const char* from, const char* to) {
    if (digits)
      for (; from != to; ++from)
        if (digit(*from)) digits[from - line.data()] = 0x0f;
  };
  for (const Piece& piece : shape.pieces) {
    if (static_cast<std::size_t>(end - at) <= piece.size || !same(at, text + piece.begin, piece.size))
      return false;
    at += piece.size;
    if (piece.blanks)
      while (at != end && blank(*at)) ++at;
    const char* const from = at;
    if (!piece.taken) {
      if (!pass(at, end)) return false;
      mark(from, at);
      continue;
    }
    if (at == end || *at == '-') return false;
    const bool groups = piece.written == Written::printed && notation_ == Notation::text;
    const bool quick = pass_short(at, end, groups);
    if (!quick && !number(piece, at, end, 0, ignored)) return false;
    if (quick) mark(from, at);  // else the digits of another number may not be read so
    if (piece.field == Field::step && piece.unit == 1 && at - from <= 8 && std::all_of(from, at, digit)) {
      layout.step = place(from);
      layout.step_digits = static_cast<int>(at - from);
      continue;
    }
    bool first = false;
    if (piece.field == Field::mfu &&
        never_above_one({from, static_cast<std::size_t>(at - from)}, piece.unit, first)) {
      if (first && digits) digits[from - line.data()] = 0;
      continue;
    }
    if (piece.field == Field::step || piece.field == Field::rank || piece.field == Field::mfu)
      layout.wanted.emplace_back(place(from), piece);
  }
  const std::size_t rest = shape.text.size() - shape.end;
  return static_cast<std::size_t>(end - at) == rest && same(at, text + shape.end, rest);
}

/// The numbers of a glance at a line of that layout.
[[gnu::always_inline]] inline std::optional<Glance> LineShapes::numbers(const Layout& layout,
                                                                        std::string_view text) const {
  Glance out{std::numeric_limits<double>::quiet_NaN(), -1, 0};
  const char* const end = text.data() + text.size();
  if (layout.step_digits > 0)
    out.number = static_cast<double>(
        static_cast<std::int64_t>(EightBytes::value(text.data() + layout.step, end, layout.step_digits)));
  for (const auto& [place, piece] : layout.wanted) {
    const char* at = text.data() + place;
    Printed printed;
    if (piece.written == Written::shortest
            ? !take_shortest(at, end, piece.unit, 0, printed)
            : !take_short(at, end, piece.kind == Kind::measured, piece.unit,
                          piece.written == Written::printed, 0, printed) &&
                  !take_plain(at, end, piece.kind, piece.unit, 0, printed, piece.written == Written::printed))
      return std::nullopt;
    (piece.field == Field::step   ? out.number
     : piece.field == Field::rank ? out.rank
                                  : out.mfu_low) = piece.field == Field::mfu ? printed.low : printed.value;
  }
  return out;
}

/// Whether the line is one of that layout.
[[gnu::always_inline]] inline bool LineShapes::fits(const Layout& layout, std::string_view text) {
  if (layout.size != text.size()) return false;
  const char* at = text.data();
  const char* const last = at + text.size() - 8;  // the last eight bytes overlap those before
  for (const Layout::Word& known : layout.words) {
    std::uint64_t word = 0;
    std::memcpy(&word, std::min(at, last), sizeof word);
    const std::uint64_t others = (word & ~known.digits) ^ known.text;
    const std::uint64_t above_nine = ((word & known.digits) + 0x0606060606060606) & 0x1010101010101010;
    if ((others | above_nine) != 0) return false;
    at += 8;
  }
  return true;
}

const LineShapes::Layout* LineShapes::known_layout(SameSize& same, std::string_view text) const {
  for (std::size_t i = 0; i < same.used; ++i) {
    const Layout& layout = same.layouts[same.order[i]];
    if (!fits(layout, text)) continue;
    if (i > 0) std::swap(same.order[i], same.order[i - 1]);
    return &layout;
  }
  return nullptr;
}

/// A free place, or the one that fitted least.
LineShapes::Layout& LineShapes::new_layout(SameSize& same) {
  if (same.used < SameSize::most) ++same.used;
  return same.layouts[same.order[same.used - 1]];
}

std::optional<Glance> LineShapes::glance(const Line& line) {
  constexpr std::size_t longest_glanced = 1024;
  const std::string_view text = line.text;
  if (!EightBytes::possible || shapes_.empty() || text.size() < 8 || text.size() > longest_glanced ||
      !line.complete || line.overlong)
    return std::nullopt;
  layouts_.resize(sizes);
  // Numbers of all widths, as shortest doubles are, leave no layout to be known.
  const bool by_layout = 2 * misfits_ <= 512 + fitted_;
  SameSize& same = layouts_[text.size() % sizes];
  if (const Layout* const known = by_layout ? known_layout(same, text) : nullptr) {
    ++fitted_, ++read_;
    return numbers(*known, text);
  }
  ++misfits_;
  std::array<char, longest_glanced> digits;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t which = last_ + i < shapes_.size() ? last_ + i : last_ + i - shapes_.size();
    if (by_layout) std::fill_n(digits.begin(), text.size(), '\0');
    if (!glanced(shapes_[which], text, passing_, by_layout ? digits.data() : nullptr)) continue;
    if (by_layout) {
      passing_.size = text.size();
      passing_.words.clear();
      for (std::size_t at = 0; at < text.size(); at += 8) {
        const std::size_t from = std::min(at, text.size() - 8);
        Layout::Word word{};
        std::memcpy(&word.text, text.data() + from, 8);
        std::memcpy(&word.digits, digits.data() + from, 8);
        word.text &= ~word.digits;
        passing_.words.push_back(word);
      }
      std::swap(new_layout(same), passing_);
    }
    last_ = which;
    ++read_;
    return numbers(by_layout ? same.layouts[same.order[same.used - 1]] : passing_, text);
  }
  return std::nullopt;
}

std::size_t LineShapes::read(std::string_view text, std::int64_t line, Step& step, bool whole) {
  if (text.size() < 8) return 0;
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t which = last_ + i < shapes_.size() ? last_ + i : last_ + i - shapes_.size();
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
