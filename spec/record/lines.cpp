#include "spec/record/lines.hpp"

#include <utility>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::record {

RecordLines::RecordLines(std::istream& in, std::string origin) : in_(in), origin_(std::move(origin)) {}

std::string RecordLines::where() const { return origin_ + ":" + std::to_string(number_); }

/// False at the end of the stream.
bool RecordLines::read_more() {
  constexpr std::size_t block = std::size_t{1} << 18;
  // No event is as long (a start on 10,000 ranks has 1 MB): a file without line ends must not fill the
  // memory.
  constexpr std::size_t longest = 64 << 20;
  buffer_.erase(0, std::exchange(begin_, 0));
  const std::size_t held = buffer_.size();
  if (held > longest)
    throw UserError(ExitCode::bad_data, origin_ + ":" + std::to_string(number_ + 1) +
                                            ": the line is longer than 64 MiB, so this is no record; give a "
                                            "run's folder or its run.jsonl");
  buffer_.resize(held + block);
  in_.read(buffer_.data() + held, block);
  buffer_.resize(held + static_cast<std::size_t>(in_.gcount()));
  if (in_.bad())
    throw UserError(ExitCode::io, origin_ + ": cannot be read to its end; is its disk in order?");
  return buffer_.size() > held;
}

bool RecordLines::next_text() {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find('\n', begin_ + searched);
    if (end != std::string::npos) {
      text_ = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      return ended_ = true;
    }
    searched = buffer_.size() - begin_;
    if (!read_more()) break;
  }
  text_ = std::string_view(buffer_).substr(begin_);
  begin_ = buffer_.size();
  ended_ = false;
  return !text_.empty();
}

bool RecordLines::next() {
  if (!next_text()) return false;
  ++number_;
  link_ = chain_.follow(text_, ended_);
  return link_ != Link::cut_off;
}

void Damage::note(const std::string& sentence) {
  if (first.size() < most) first.push_back(sentence);
  ++count;
}

std::vector<std::string> Damage::sentences() const {
  std::vector<std::string> all = first;
  if (const auto more = count - static_cast<std::int64_t>(first.size()); more > 0)
    all.push_back("and " + grouped(more) + (more == 1 ? " more line is" : " more lines are") + " damaged");
  return all;
}

}  // namespace assay::spec::record
