#include "spec/text/nearest.hpp"

#include <algorithm>

namespace assay::spec {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// Bytes that both begin and end with.
std::size_t shared_ends(std::string_view left, std::string_view right) {
  const std::size_t most = std::min(left.size(), right.size());
  std::size_t first = 0, last = 0;
  while (first < most && left[first] == right[first]) ++first;
  while (first + last < most && left[left.size() - 1 - last] == right[right.size() - 1 - last]) ++last;
  return first + last;
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Rows i-2, i-1 and i of the table of distances between prefixes.
  std::vector<std::size_t> before(right.size() + 1), above(right.size() + 1), row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substitution = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[right.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  const std::string wanted = lower(word);
  const std::size_t limit = std::max<std::size_t>(1, wanted.size() / 2);
  std::optional<std::string> best;
  std::size_t least = limit + 1, most = 0;
  for (const std::string& candidate : known) {
    const std::string word_known = lower(candidate);
    const std::size_t distance = edit_distance(wanted, word_known), shared = shared_ends(wanted, word_known);
    if (distance < least || (distance == least && best && shared > most)) {
      least = distance, most = shared;
      best = candidate;
    }
  }
  return best;
}

}  // namespace assay::spec
