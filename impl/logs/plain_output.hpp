#pragma once
// Standard output and error, without effect on the terminal beyond text.
#include <memory>
#include <ostream>
#include <streambuf>

namespace assay::impl::logs {

/// While it lives, what is written to a stream is text: control characters other than line ends and
/// tabulators, and bytes that are no UTF-8, are spelled out as `\x1b`, wherever they come from (names in
/// files, a model's tokens, a library). `terminal`: the colours and the line that is drawn again, which
/// logs/console and logs/progress_line write, are passed on. A character may come in pieces. By any thread.
class PlainOutput {
 public:
  PlainOutput(std::ostream& stream, bool terminal);
  ~PlainOutput();
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;

 private:
  class Buffer;
  std::ostream& stream_;
  std::streambuf* const before_;
  const std::unique_ptr<Buffer> buffer_;
};

}  // namespace assay::impl::logs
