#pragma once
// What the message of a refused layout tells a person to change (spec/config/division.hpp), read from its
// text.
#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::tests {

/// Changes that a message names: settings and their values, "ranks" for how many are started.
using Way = std::map<std::string, std::int64_t>;

/// Every way of "...: set A to 1 or 2, or B to 3, or start 4 ranks, or set A to 1 and B to 2, or start 4
/// ranks with A=1 and B=2".
inline std::vector<Way> ways_of(const std::string& text) {
  std::vector<Way> all;
  const std::size_t first = std::min({text.rfind(": set "), text.rfind(": start "), text.rfind(": leave ")});
  if (first == std::string::npos) return all;
  std::string rest = text.substr(first + 2);
  rest.erase(rest.find_last_not_of('\n') + 1);
  for (std::size_t end; !rest.empty(); rest = end == std::string::npos ? "" : rest.substr(end + 5)) {
    end = rest.find(", or ");
    const std::string way = rest.substr(0, end);
    static const std::regex started("start (\\d+)(?: or (\\d+))? ranks?(.*)"),
        setting("([a-z_.]+|that stage)(?: to |=)(\\d+)(?: or (\\d+))?");
    std::smatch found;
    Way with;
    std::string settings = way;
    std::vector<std::int64_t> counts;
    if (std::regex_match(way, found, started)) {
      counts.push_back(std::stoll(found[1]));
      if (found[2].matched) counts.push_back(std::stoll(found[2]));
      settings = found[3];
    }
    if (way.find("leave batch.ramp out") != std::string::npos ||
        way.find("without batch.ramp") != std::string::npos)
      with["batch.ramp"] = 0;
    std::string last;
    for (std::sregex_iterator each(settings.begin(), settings.end(), setting), none; each != none; ++each) {
      last = (*each)[1];
      with[last] = std::stoll((*each)[2]);
      if ((*each)[3].matched) {
        all.push_back(with);
        with[last] = std::stoll((*each)[3]);
      }
    }
    if (counts.empty()) {
      if (with.empty()) throw std::runtime_error("no way: " + way);
      all.push_back(with);
    }
    for (const std::int64_t count : counts) {
      with["ranks"] = count;
      all.push_back(with);
    }
  }
  return all;
}

}  // namespace assay::tests
