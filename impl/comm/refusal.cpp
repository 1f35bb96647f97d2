#include "impl/comm/refusal.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "impl/machine/host_name.hpp"
#include "spec/failure.hpp"

namespace assay::impl {

ExitCode exit_code_of(const std::exception& error) { return failure_of(error).code; }

void refuse_together(Communicator& communicator, const std::function<void()>& work) {
  if (communicator.size() == 1) return work();
  std::string mine;  // "2 text"
  try {
    work();
  } catch (const std::exception& error) {
    mine = std::to_string(static_cast<int>(exit_code_of(error))) + " " + failure_of(error).text;
  }
  const std::vector<std::string> all = communicator.all_gather(mine);
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& text) { return !text.empty(); });
  if (first == all.end()) return;
  const auto rank = static_cast<std::size_t>(first - all.begin());
  std::string text = first->substr(first->find(' ') + 1);
  if (std::count(all.begin(), all.end(), *first) < std::ssize(all))
    text = "rank " + std::to_string(rank) + " on host " + communicator.all_gather(host_name())[rank] + ": " +
           text;
  throw AgreedError(static_cast<ExitCode>(std::stoi(*first)), spec::lines_of(text));
}

}  // namespace assay::impl
