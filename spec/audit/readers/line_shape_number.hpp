#pragma once
// How a number of a known line is read, inlined where lines are read and where they are glanced at.
#include <algorithm>

#include "spec/audit/readers/line_shape.hpp"
#include "spec/audit/readers/quick_numbers.hpp"

namespace assay::spec::audit {

/// Whether a number that was read from `from` to `to` is written as the one that was learned.
[[gnu::always_inline]] inline bool LineShapes::alike(const Piece& piece, const char* from, const char* to) {
  return !piece.digits || std::all_of(from, to, quick::digit);
}

[[gnu::always_inline]] inline bool LineShapes::number(const Piece& piece, const char*& at, const char* end,
                                                      std::int64_t line, Step& step) const {
  const char* const from = at;
  auto& field = step[piece.field];
  Printed& out = field.emplace();
  if (piece.written == Written::shortest)
    return take_shortest(at, end, piece.unit, line, out) && alike(piece, from, at);
  const bool groups = piece.written == Written::printed && notation_ == Notation::text;
  const bool measured = piece.kind == Kind::measured;
  if (notation_ == Notation::json) {  // "+1", "1." and "1,000" are no numbers there
    const char* stop = at;
    return pass_number(stop, end) && take_plain(at, end, piece.kind, piece.unit, line, out, groups) &&
           at == stop && alike(piece, from, at);
  }
  return ((EightBytes::possible && quick::take_short(at, end, measured, piece.unit, groups, line, out)) ||
          take_plain(at, end, piece.kind, piece.unit, line, out, groups)) &&
         alike(piece, from, at);
}

/// A number that no field takes.
inline bool LineShapes::pass(const char*& at, const char* end) const {
  if (notation_ == Notation::text && at != end && *at == '+') ++at;
  return pass_number(at, end);
}

}  // namespace assay::spec::audit
