#pragma once
// Bytes of a log in large blocks, and its lines made fit to read: colours, carriage returns, NUL bytes, the
// prefixes of launchers and ends that are cut taken off, and lines that were wrapped put together.
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "spec/audit/readers/line_ends.hpp"
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// The bytes of a stream in blocks, without a byte order mark. Errors: UserError(io).
class Blocks {
 public:
  static constexpr std::size_t block = std::size_t{1} << 18;    ///< read at once
  static constexpr std::size_t longest = std::size_t{1} << 20;  ///< of what may be left in `rest` for more

  Blocks(std::istream& in, std::string origin);

  /// What is read and not yet taken. Views live until the next `more`.
  std::string_view rest() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void take(std::size_t bytes) { begin_ += bytes; }
  /// Appends the next block to the rest. False at the end of the stream. Domain: the rest holds at most a
  /// block.
  bool more();
  /// Bytes of the stream before `rest`.
  std::int64_t offset() const { return read_ - static_cast<std::int64_t>(end_ - begin_); }
  const std::string& origin() const { return origin_; }

 private:
  std::istream& in_;
  std::string origin_;
  std::size_t capacity_ = 2 * block;
  std::unique_ptr<char[]> buffer_;  // not initialised: untouched pages cost nothing
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t read_ = 0;
  bool first_ = true;
};

struct Line {
  std::string_view text;    ///< lives until the next line is asked for
  std::int64_t number = 0;  ///< from 1, as editors count
  int rank = -1;            ///< that a launcher's prefix names
  bool complete = true;     ///< false: the last line has no end
  bool overlong = false;    ///< longer than `Blocks::longest`: its first part only
  bool cut = false;         ///< what stood last in it was cut, and is taken off
};

/// A carriage return starts a new piece of the same line, as on a terminal (progress bars).
class Lines {
 public:
  /// `rows`: as line_ends.
  explicit Lines(Blocks& blocks, bool rows = false);
  bool next(Line& line);
  std::int64_t count() const { return number_; }
  bool truncated() const { return truncated_; }
  const CutLines& cut() const { return cut_; }

 private:
  void look_over();
  bool next_raw(std::string_view& raw);
  bool next_whole(std::string_view& raw);
  void take_cut_end(Line& line);
  std::string_view clean(std::string_view raw);
  bool piece(Line& line);

  Blocks& blocks_;
  std::size_t scanned_ = 0;  // bytes of the rest known to hold no line end
  bool plain_ = false, bare_colours_ = false, numbered_ = false, overlong_ = false, complete_ = true,
       truncated_ = false;
  std::string_view pieces_;  // of the current line, still to be given
  std::string scratch_;
  std::int64_t number_ = 0;
  LineEnds ends_;
  bool full_ = false;                 // the current line reaches the column where lines are cut
  std::int64_t begun_ = 0;            // number of the current line, of its first part where it was wrapped
  bool whole_ = true, long_ = false;  // the current line has an end; it is overlong
  std::string joined_, plain_line_;
  bool indented_ = false;             // all lines are
  std::optional<std::string> ahead_;  // read to see whether it goes on with the line before
  CutLines cut_;
};

}  // namespace assay::spec::audit
