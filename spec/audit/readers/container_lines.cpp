#include "spec/audit/readers/container_lines.hpp"

#include <algorithm>
#include <utility>

#include "spec/audit/readers/json_scan.hpp"

namespace assay::spec::audit {
namespace {

/// The members of one object that are looked for.
struct ContainerEvents {
  std::string printed;
  bool log = false, stream = false;
  void begin_object() { ++depth_; }
  void end_object() { --depth_; }
  void begin_array() { ++depth_; }
  void end_array() { --depth_; }
  void key(std::string_view name) {
    here_ = depth_ == 1 && name == "log"      ? Here::log
            : depth_ == 1 && name == "stream" ? Here::stream
                                              : Here::other;
  }
  void text(std::string_view said) {
    if (depth_ == 1 && here_ == Here::log) printed = said, log = true;
    if (depth_ == 1 && here_ == Here::stream) stream = said == "stdout" || said == "stderr";
    here_ = Here::other;
  }
  void number(std::string_view) {}
  void word(std::string_view) {}

 private:
  enum class Here { other, log, stream } here_ = Here::other;
  int depth_ = 0;
};

constexpr std::string_view object_start = "{\"log\":\"";

/// What the program printed of a line of Docker's; false where it is none.
bool printed_in(std::string_view line, std::string& out) {
  if (!line.starts_with("{\"")) return false;
  ContainerEvents events;
  MemoryBytes bytes(line);
  JsonScan scan(bytes, events);
  if (!scan.value() || !events.log || !events.stream) return false;
  scan.blanks();
  if (bytes.peek() >= 0) return false;
  out = std::move(events.printed);
  return true;
}

}  // namespace

bool container_lines(std::string_view start) {
  std::string ignored;
  // The first line may be what is left of one.
  for (int lines = 0; lines < 2 && !start.empty(); ++lines) {
    const std::size_t end = std::min(start.find('\n'), start.size());
    if (printed_in(start.substr(0, end), ignored)) return true;
    start.remove_prefix(std::min(end + 1, start.size()));
  }
  return false;
}

bool ContainerLines::next(std::string_view& line) {
  std::size_t searched = 0;
  while (true) {
    const std::string_view rest = blocks_.rest();
    const std::size_t end = rest.find('\n', searched);
    complete_ = end != std::string_view::npos;
    searched = rest.size();
    if (!complete_ && rest.size() < Blocks::longest && blocks_.more()) continue;
    if (rest.empty()) return false;
    line = rest.substr(0, end);
    blocks_.take(std::min(line.size() + 1, rest.size()));
    return true;
  }
}

void ContainerLines::unwrap(std::string_view line) {
  std::string printed;
  if (!printed_in(line, printed)) {
    // Of an object that is damaged, what is left.
    printed.assign(line.substr(line.starts_with(object_start) ? object_start.size() : 0));
    if (complete_) printed += '\n';
  }
  partial_ += printed;
  if (!partial_.ends_with('\n') && complete_ && partial_.size() < Blocks::longest) {
    ++waiting_;
    return;
  }
  out_.append(waiting_, '\n');
  out_ += partial_;
  partial_.clear();
  waiting_ = 0;
}

ContainerLines::int_type ContainerLines::underflow() {
  out_.clear();
  std::string_view line;
  while (out_.size() < Blocks::block && next(line)) unwrap(line);
  if (out_.empty()) {
    out_.append(waiting_, '\n');
    out_ += std::exchange(partial_, {});
    waiting_ = 0;
  }
  if (out_.empty()) return traits_type::eof();
  setg(out_.data(), out_.data(), out_.data() + out_.size());
  return traits_type::to_int_type(out_[0]);
}

}  // namespace assay::spec::audit
