#include "spec/audit/readers/rank_prefix.hpp"

#include <algorithm>

#include "spec/audit/digits.hpp"

namespace assay::spec::audit {
namespace {

/// The whole number below a billion at `at`, which moves behind it.
bool number_at(std::string_view text, std::size_t& at, int& number) {
  const std::size_t first = at;
  for (number = 0; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (at - first == 9) return false;
    number = number * 10 + (text[at] - '0');
  }
  return at > first;
}

bool skip(std::string_view text, std::size_t& at, std::string_view word) {
  if (text.substr(at, word.size()) != word) return false;
  at += word.size();
  return true;
}

/// One prefix of a launcher; `numbered` lines have one that is no rank.
int take_one(std::string_view& text, bool numbered) {
  std::size_t at = 0;
  int rank = -1, job = 0;
  if (text.size() < 3) return -1;
  if (text[0] == '[' && (text[1] == 'r' || text[1] == 'd')) {
    at = 1;
    if (!skip(text, at, text[1] == 'r' ? "rank" : "default")) return -1;
    skip(text, at, " ");
    if (!number_at(text, at, rank) || !skip(text, at, "]")) return -1;
    skip(text, at, ":");
  } else if (text[0] == '[') {
    at = 1;
    if (!number_at(text, at, job) || !skip(text, at, ",")) return -1;
    skip(text, at, "mpirank:");  // SageMaker's, which names the host behind it
    if (!number_at(text, at, rank)) return -1;
    if (skip(text, at, ","))
      while (at < text.size() && at < 128 && text[at] != ']') ++at;
    if (!skip(text, at, "]<") ||
        !(skip(text, at, "stdout>:") || skip(text, at, "stderr>:") || skip(text, at, "stddiag>:")))
      return -1;
  } else if (numbered) {
    return -1;
  } else {
    while (at < text.size() && at < 6 && text[at] == ' ') ++at;
    if (!number_at(text, at, rank) || at + 1 >= text.size() || text[at] != ':' || text[at + 1] != ' ')
      return -1;
    at += 2;
  }
  text.remove_prefix(at);
  return rank;
}

}  // namespace

bool numbers_its_lines(std::string_view rest) {
  double last = 0;
  int lines = 0;
  while (!rest.empty()) {
    std::size_t at = 0;
    int number = 0;
    if (number_at(rest, at, number) && at < rest.size() && rest[at] == ':') {
      if (number <= last) return false;
      last = number;
      ++lines;
    }
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  return lines > 1;
}

int take_rank(std::string_view& text, bool numbered) {
  if (text.empty() || (text[0] != '[' && text[0] != ' ' && (text[0] < '0' || text[0] > '9'))) return -1;
  if (text[0] != '[') {  // most lines that begin with a number are no prefix
    const char *at = text.data(), *const end = at + std::min<std::size_t>(text.size(), 16);
    if (EightBytes::possible && text.size() >= 8)
      if (const int digits = EightBytes(at, text.data() + text.size()).count();
          digits > 0 && digits < 8 && at[digits] != ':')
        return -1;
    while (at != end && (*at == ' ' || (*at >= '0' && *at <= '9'))) ++at;
    if (at != end && *at != ':') return -1;
  }
  int rank = -1;
  for (int i = 0; i < 3; ++i) {
    const int found = take_one(text, numbered);
    if (found < 0) break;
    rank = found;
  }
  return rank;
}

}  // namespace assay::spec::audit
