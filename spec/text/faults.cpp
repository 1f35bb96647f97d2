#include "spec/text/faults.hpp"

#include <algorithm>
#include <utility>

namespace assay::spec {

namespace {
std::vector<std::string> said_together(const std::vector<std::string>& messages) {
  constexpr std::size_t most = 20;  // a screen; when these are mended the others are said
  std::vector<std::string> lines = {(messages.size() < Faults::most ? "" : "at least ") +
                                    std::to_string(messages.size()) + " mistakes:"};
  for (std::size_t i = 0; i < std::min(most, messages.size()); ++i)
    for (const std::string& line : lines_of(messages[i])) lines.push_back("  " + line);
  if (messages.size() > most) lines.push_back("  and " + std::to_string(messages.size() - most) + " more");
  return lines;
}
}  // namespace

ManyFaults::ManyFaults(ExitCode code, std::vector<std::string> messages)
    : UserError(code, said_together(messages)), messages_(std::move(messages)) {}

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
