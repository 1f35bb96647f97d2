#include "impl/logs/plain_output.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "spec/text/quote.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::logs {

namespace {
/// All that this program writes beyond text: bold, yellow, green, plain again, erase the rest of the line.
constexpr std::string_view our_sequences[] = {"\x1b[1m", "\x1b[33m", "\x1b[32m", "\x1b[0m", "\x1b[K"};
}  // namespace

class PlainOutput::Buffer final : public std::streambuf {
 public:
  Buffer(std::streambuf& to, bool terminal) : to_(to), terminal_(terminal) {}

  /// What is left of a character that never became whole.
  void end() {
    const std::scoped_lock lock(mutex_);
    put(spec::printable(rest_));
    rest_.clear();
  }

 protected:
  int_type overflow(int_type byte) override {
    if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
    const char one = traits_type::to_char_type(byte);
    return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::scoped_lock lock(mutex_);
    const std::string_view given(text, static_cast<std::size_t>(size));
    if (rest_.empty()) return write(given) ? size : 0;
    const std::string joined = std::exchange(rest_, {}) + std::string(given);
    return write(joined) ? size : 0;
  }
  int sync() override {
    const std::scoped_lock lock(mutex_);
    return to_.pubsync();
  }

 private:
  bool put(std::string_view text) {
    const auto size = static_cast<std::streamsize>(text.size());
    return to_.sputn(text.data(), size) == size;
  }

  /// Bytes at the beginning of `text` that are passed on as they are; 0: the first one is spelled out.
  std::size_t plain(std::string_view text) const {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first == '\n' || first == '\t' || (first >= 0x20 && first < 0x7F)) return 1;
    if (first >= 0x80) {
      const std::size_t length = spec::utf8_length(text);
      return length > 0 && !spec::is_control(spec::code_point(text.substr(0, length))) ? length : 0;
    }
    if (!terminal_) return 0;
    for (const std::string_view ours : our_sequences)
      if (text.starts_with(ours)) return ours.size();
    return first == '\r' ? 1 : 0;
  }

  bool write(std::string_view text) {
    std::size_t done = 0, at = 0;
    while (at < text.size()) {
      if (const std::size_t length = plain(text.substr(at))) {
        at += length;
        continue;
      }
      if (!put(text.substr(done, at - done))) return false;
      if (spec::begins_character(text.substr(at))) {
        rest_ = text.substr(at);
        return true;
      }
      const std::size_t length = std::max<std::size_t>(1, spec::utf8_length(text.substr(at)));
      if (!put(spec::printable(text.substr(at, length)))) return false;
      done = at += length;
    }
    return put(text.substr(done));
  }

  std::streambuf& to_;
  const bool terminal_;
  std::mutex mutex_;
  std::string rest_;  ///< the beginning of a character
};

PlainOutput::PlainOutput(std::ostream& stream, bool terminal)
    : stream_(stream), before_(stream.rdbuf()), buffer_(std::make_unique<Buffer>(*before_, terminal)) {
  stream_.rdbuf(buffer_.get());
}

PlainOutput::~PlainOutput() {
  buffer_->end();
  const auto state = stream_.rdstate();
  stream_.rdbuf(before_);
  stream_.setstate(state);
}

}  // namespace assay::impl::logs
