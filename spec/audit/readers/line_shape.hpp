#pragma once
// A log repeats one line with other numbers. What a reader found out about a line - which of its numbers mean
// what - holds for every later line that has the same text between its numbers: those are read at one go.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/readers/line_source.hpp"
#include "spec/audit/readers/line_watch.hpp"
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// How a number is written: as printf writes it, with or without digit groups, or in the shortest form that
/// reads back to the same double.
enum class Written { printed, ungrouped, shortest };

/// The numbers that a reader took from a line, in the order in which it came upon them.
class TakenNumbers {
 public:
  struct Number {
    const char* at;
    Field field;
    Written written;
    Kind kind;
    double unit;
  };
  void clear() { count_ = 0; }
  void add(const char* at, Field field, Kind kind, double unit, Written written = Written::printed) {
    if (count_ < numbers_.size()) numbers_[count_++] = {at, field, written, kind, unit};
  }
  const Number* begin() const { return numbers_.data(); }
  const Number* end() const { return numbers_.data() + count_; }

 private:
  std::array<Number, 2 * field_count> numbers_;
  std::size_t count_ = 0;
};

/// What two runs in one log are distinguished by, besides the numbers of their steps; NaN where a line has
/// none.
struct RunMarks {
  double stamp;           ///< time of the line [s]
  double epoch;           ///< passes over the data
  double planned, batch;  ///< steps of the run, sequences of a step
};
inline constexpr RunMarks no_marks = [] {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  return RunMarks{none, none, none, none};
}();

/// What must be known of a step even if it is not kept.
struct Glance {
  double number, rank;  ///< NaN and -1 where it has none
  double mfu_low;       ///< 0 where it has none
  bool marked;          ///< there are any `marks`
  RunMarks marks;       ///< planned steps and batch only of a line that has both
  WatchedNumbers watched;
};

/// What the text between the numbers is written in. In JSON (and Python's dictionaries) a digit in a key
/// belongs to its name, and numbers are JSON's.
enum class Notation { text, json };

/// The last few lines that were learned. A line is one of them with other numbers when the text between is
/// the same, but for how many blanks stand before a number. Digits that follow a letter belong to its word
/// ("bf16"). Of numbers that no field takes any decimal will do; so a reader may learn a line only where they
/// change nothing. A step's number that was nothing but digits stays so: some readers tell their lines by it.
class LineShapes {
 public:
  explicit LineShapes(Notation notation = Notation::text) : notation_(notation) {}

  /// Lines like `text` are known from now on. Every number of `taken` stands in `text`; else nothing is
  /// learned.
  void learn(std::string_view text, const TakenNumbers& taken);

  /// Reads the line that `text` starts with, or is (`whole`), into `step`, which holds no numbers yet; gives
  /// its bytes. 0 when it is none of those known, or a number of it can only be read the long way; `step`
  /// then is as it was. Line breaks count: numbers behind one are of the next line.
  std::size_t read(std::string_view text, std::int64_t line, Step& step, bool whole = true);
  /// Looks over a whole line without reading it: empty unless it is one of those known, and every number that
  /// a field takes could be read, is finite and not below 0.
  std::optional<Glance> glance(const Line& line);
  /// The same for whole lines; none that lacks its end.
  void learn(const Line& line, const TakenNumbers& taken);
  bool read(const Line& line, Step& step);
  /// Line breaks in the text that was read last.
  std::int64_t breaks() const { return breaks_; }
  /// The fields that it filled, as RecordBuilder::step takes them.
  std::uint32_t fields() const { return fields_; }

 private:
  /// Text without numbers, and the number behind it.
  struct Piece {
    std::uint32_t begin = 0, size = 0;  // of Shape::text
    bool blanks = false;                // more of them may stand before the number
    bool taken = false;                 // by a field
    bool digits = false;                // a step's number that was nothing but digits: it stays so
    Field field = Field::count_;
    Written written = Written::printed;
    Kind kind = Kind::measured;
    std::uint32_t breaks = 0;  // before the number
    double unit = 1;
  };
  struct Shape {
    std::string text;  // of all pieces
    std::vector<Piece> pieces;
    std::uint32_t end = 0, breaks = 0;  // of the pieces; the rest is text behind the last number
    std::uint32_t fields = 0;
  };
  bool matches(const Shape& shape, const char*& at, const char* end, std::int64_t line, Step& step) const;
  bool pass(const char*& at, const char* end) const;
  static bool begins_alike(const Shape& shape, std::string_view text);
  static bool alike(const Piece& piece, const char* from, const char* to);
  /// A number whose digits stand in the same places in every line of a layout.
  struct Placed {
    Piece piece;
    std::uint32_t at = 0;      // where it begins
    int whole = 0;             // digits before the point; 0: it is of another form, and read as any
    int fraction = 0;          // behind it
    bool exponent = false;     // "e-05" follows
    std::int8_t watched = -1;  // its place among those
  };
  static Placed placed(const Piece& piece, std::uint32_t at, std::string_view number);
  static bool read(const Placed& placed, std::string_view line, double& value, double& low);
  /// A line to the width of every number: another one with the same bytes but for the digits of its numbers
  /// is looked over in a few operations per eight bytes.
  struct Layout {
    struct Word {
      std::uint64_t text, digits;  // of eight bytes: what must stand there; the half bytes that may be 0 to 9
    };
    std::vector<Word> words;
    std::size_t size = 0;        // of the line; 0: none
    std::uint32_t step = 0;      // where the step's number stands,
    int step_digits = 0;         // if it is one to eight digits
    std::vector<Placed> wanted;  // other numbers of a glance
  };
  /// Those of lines as long as each other, or nearly so.
  struct SameSize {
    static constexpr std::size_t most = 8;
    std::array<Layout, most> layouts;
    std::array<std::uint8_t, most> order{0, 1, 2, 3, 4, 5, 6, 7};  // those of more lines first
    std::size_t used = 0;
  };
  static bool fits(const Layout& layout, std::string_view text);
  const Layout* known_layout(SameSize& same, std::string_view text) const;
  static Layout& new_layout(SameSize& same);
  /// The layout of `text`; `widths`, when given, is filled with a line's digits. False: of another shape.
  bool glanced(const Shape& shape, std::string_view text, Layout& layout, char* widths) const;
  std::optional<Glance> numbers(const Layout& layout, std::string_view text) const;
  bool number(const Piece& piece, const char*& at, const char* end, std::int64_t line, Step& step) const;

  static constexpr std::size_t most = 4, longest = 4096;
  Notation notation_;
  std::vector<Shape> shapes_;
  std::size_t last_ = 0, oldest_ = 0;
  static constexpr std::size_t sizes = 16;  // a power of two
  std::vector<SameSize> layouts_;           // by the size of the line
  Layout passing_;                          // of a line of no known layout
  std::int64_t fitted_ = 0, misfits_ = 0;
  std::uint32_t fields_ = 0;
  std::int64_t breaks_ = 0, learned_ = 0, read_ = 0;
};

}  // namespace assay::spec::audit
