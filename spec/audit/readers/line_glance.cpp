// Lines of a known shape that are looked over without being read: most of a long log is passed over in the
// end.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "spec/audit/readers/line_shape.hpp"
#include "spec/audit/readers/line_shape_number.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::uint32_t bit_of(Field field) { return std::uint32_t{1} << static_cast<int>(field); }
constexpr std::uint32_t plan_fields = bit_of(Field::planned_steps) | bit_of(Field::step_sequences);

/// Where a glance puts a field that tells runs apart; nullptr: it tells nothing.
double* mark_of(RunMarks& marks, Field field) {
  switch (field) {
    case Field::elapsed:
      return &marks.stamp;
    case Field::epoch:
      return &marks.epoch;
    case Field::planned_steps:
      return &marks.planned;
    case Field::step_sequences:
      return &marks.batch;
    default:
      return nullptr;
  }
}

}  // namespace

/// Whether the line begins with the byte that lines of that shape begin with.
bool LineShapes::begins_alike(const Shape& shape, std::string_view text) {
  return shape.pieces.empty() || shape.pieces[0].size == 0 || shape.text[0] == text[0];
}

/// How the digits of a number stand in its line. `number` as quick::pass_short passed it.
LineShapes::Placed LineShapes::placed(const Piece& piece, std::uint32_t at, std::string_view number) {
  Placed out{piece, at};
  out.watched = watched_places[static_cast<std::size_t>(piece.field)];
  const auto digits = [&] {
    const auto end = std::find_if_not(number.begin(), number.end(), quick::digit);
    const auto count = static_cast<int>(end - number.begin());
    number.remove_prefix(static_cast<std::size_t>(count));
    return count;
  };
  constexpr int most = 7;
  int whole = digits();
  if (number.starts_with('.')) {
    number.remove_prefix(1);
    out.fraction = digits();
  }
  out.exponent = number.starts_with('e') || number.starts_with('E');
  if (out.exponent) number.remove_prefix(4);
  if (piece.written != Written::shortest && whole <= most && out.fraction <= most && number.empty())
    out.whole = whole;
  return out;
}

/// As quick::take_short reads it. False: of an exponent that it does not read.
[[gnu::always_inline]] inline bool LineShapes::read(const Placed& placed, std::string_view line,
                                                    double& value, double& low) {
  double half = inverse_powers_of_ten[placed.fraction];
  const char *const at = line.data() + placed.at, *const end = line.data() + line.size();
  std::uint64_t digits = 0;
  if (placed.fraction > 0 && placed.whole + placed.fraction < 8) {
    digits = EightBytes::value(at, end, placed.whole, placed.fraction);
  } else {
    digits = EightBytes::value(at, end, placed.whole);
    if (placed.fraction > 0)
      digits = digits * EightBytes::powers[placed.fraction] +
               EightBytes::value(at + placed.whole + 1, end, placed.fraction);
  }
  const auto number = static_cast<double>(static_cast<std::int64_t>(digits));
  bool measured = placed.piece.kind == Kind::measured || placed.fraction > 0;
  if (placed.exponent) {
    const char* sign = at + placed.whole + 1;
    if (placed.fraction > 0) sign += placed.fraction + 1;
    const int exponent = (sign[1] - '0') * 10 + (sign[2] - '0');
    const int power = (*sign == '-' ? -exponent : exponent) - placed.fraction;
    if (power < -22 || power > 22) return false;
    value = (power < 0 ? number / powers_of_ten[-power] : number * powers_of_ten[power]) * placed.piece.unit;
    half = power < 0 ? inverse_powers_of_ten[-power] : powers_of_ten[power];
    measured = true;
  } else {
    value = number / powers_of_ten[placed.fraction] * placed.piece.unit;
  }
  low = measured ? value - 0.5 * half * std::abs(placed.piece.unit) : value;
  return true;
}

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
        if (quick::digit(*from)) digits[from - line.data()] = 0x0f;
  };
  for (const Piece& piece : shape.pieces) {
    if (!quick::pass_text(at, end, text + piece.begin, piece.size, piece.blanks)) return false;
    const char* const from = at;
    if (!piece.taken) {
      if (!pass(at, end)) return false;
      mark(from, at);
      continue;
    }
    if (at == end || *at == '-') return false;
    const bool groups = piece.written == Written::printed && notation_ == Notation::text;
    const bool quick = quick::pass_short(at, end, groups);
    if (!quick && !number(piece, at, end, 0, ignored)) return false;
    if (!alike(piece, from, at)) return false;
    if (quick) mark(from, at);  // else the digits of another number may not be read so
    if (piece.field == Field::step && piece.unit == 1 && at - from <= 8 &&
        std::all_of(from, at, quick::digit)) {
      layout.step = place(from);
      layout.step_digits = static_cast<int>(at - from);
      continue;
    }
    const bool watched = watched_places[static_cast<std::size_t>(piece.field)] >= 0;
    const bool of_plan = (bit_of(piece.field) & plan_fields) != 0;
    const bool marks = of_plan ? (shape.fields & plan_fields) == plan_fields
                               : piece.field == Field::elapsed || piece.field == Field::epoch;
    if (piece.field == Field::step || piece.field == Field::rank || watched || marks)
      layout.wanted.push_back(placed(piece, place(from), quick ? std::string_view(from, at) : ""));
  }
  const std::size_t rest = shape.text.size() - shape.end;
  return static_cast<std::size_t>(end - at) == rest && quick::same(at, text + shape.end, rest);
}

/// The numbers of a glance at a line of that layout.
[[gnu::always_inline]] inline std::optional<Glance> LineShapes::numbers(const Layout& layout,
                                                                        std::string_view text) const {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  Glance out{none, -1, 0, false, no_marks, {}};
  out.watched.fill(none);
  const char* const end = text.data() + text.size();
  if (layout.step_digits > 0)
    out.number = static_cast<double>(
        static_cast<std::int64_t>(EightBytes::value(text.data() + layout.step, end, layout.step_digits)));
  for (const Placed& one : layout.wanted) {
    const Piece& piece = one.piece;
    double value = 0, low = 0;
    if (one.whole == 0 || !read(one, text, value, low)) {
      const char* at = text.data() + one.at;
      Printed printed;
      if (piece.written == Written::shortest
              ? !take_shortest(at, end, piece.unit, 0, printed)
              : !take_plain(at, end, piece.kind, piece.unit, 0, printed, piece.written == Written::printed))
        return std::nullopt;
      value = printed.value, low = printed.low;
    }
    if (piece.field == Field::mfu) out.mfu_low = low;
    if (one.watched >= 0)
      out.watched[static_cast<std::size_t>(one.watched)] = value;
    else if (double* const mark = mark_of(out.marks, piece.field))
      *mark = value, out.marked = true;
    else
      (piece.field == Field::step ? out.number : out.rank) = value;
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
  std::array<char, longest_glanced> digits;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t which = last_ + i < shapes_.size() ? last_ + i : last_ + i - shapes_.size();
    if (!begins_alike(shapes_[which], text)) continue;
    if (by_layout) std::fill_n(digits.begin(), text.size(), '\0');
    if (!glanced(shapes_[which], text, passing_, by_layout ? digits.data() : nullptr)) continue;
    ++misfits_;  // of lines that are alike: others say nothing of their widths
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

}  // namespace assay::spec::audit
