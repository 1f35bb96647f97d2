#include "spec/text/faults.hpp"

#include <algorithm>
#include <utility>

namespace assay::spec {

namespace {
std::string lines_of(const std::vector<std::string>& messages) {
  constexpr std::size_t most = 20;  // a screen; when these are mended the others are said
  std::string text =
      (messages.size() < Faults::most ? "" : "at least ") + std::to_string(messages.size()) + " mistakes:";
  for (std::size_t i = 0; i < std::min(most, messages.size()); ++i) {
    text += "\n  ";
    for (const char c : messages[i]) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  }
  return messages.size() <= most ? text
                                 : text + "\n  and " + std::to_string(messages.size() - most) + " more";
}
}  // namespace

ManyFaults::ManyFaults(ExitCode code, std::vector<std::string> messages)
    : UserError(code, lines_of(messages)), messages_(std::move(messages)) {}

void Faults::keep(ExitCode code, const std::string& message) {
  if (full() || std::ranges::find(messages_, message) != messages_.end()) return;
  if (messages_.empty()) first_ = std::current_exception(), code_ = code;
  messages_.push_back(message);
}

void Faults::refuse() const {
  if (messages_.size() == 1) std::rethrow_exception(first_);
  if (!messages_.empty()) throw ManyFaults(code_, messages_);
}

}  // namespace assay::spec
