#include "spec/audit/readers/words.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace assay::spec::audit {
namespace {

/// How often a byte stands in logs, roughly.
int commonness(char c) {
  if (c >= '0' && c <= '9') return 6;
  constexpr std::string_view often = " etaoinsr", middling = "lcdmpughf.-_";
  return often.find(c) != std::string_view::npos ? 12 : middling.find(c) != std::string_view::npos ? 5 : 1;
}

std::uint16_t pair_at(const char* at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(at[0]) | static_cast<unsigned char>(at[1])
                                                                            << 8);
}

/// Where the three bytes of a word begin that are the rarest.
std::size_t rarest(std::string_view word) {
  const auto pair = [&](std::size_t at) { return commonness(word[at]) * commonness(word[at + 1]); };
  std::size_t best = 0;
  for (std::size_t at = 1; at + 2 < word.size(); ++at)
    if (pair(at) + pair(at + 1) < pair(best) + pair(best + 1)) best = at;
  return best;
}

}  // namespace

Words::Words(std::vector<std::string_view> words) : words_(std::move(words)) {
  if (words_.size() > 64) throw std::logic_error("more than 64 words are looked for at once");
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::string_view word = words_[i];
    if (word.size() < 3) throw std::logic_error("a word of fewer than three bytes: " + std::string(word));
    // Every second pair of a text is examined: one of two that follow each other is among them.
    const std::size_t at = std::min<std::size_t>(rarest(word.substr(0, 128)), 126);
    for (const std::size_t offset : {at, at + 1}) {
      const std::uint16_t pair = pair_at(word.data() + offset);
      noticed_[pair >> 6] |= std::uint64_t{1} << (pair & 63);
      places_.push_back({pair, static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(offset)});
    }
  }
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return drawer(a.pair) < drawer(b.pair); });
  for (std::size_t i = 0; i < places_.size(); ++i)
    for (std::size_t behind = drawer(places_[i].pair) + 1; behind < first_.size(); ++behind)
      first_[behind] = static_cast<std::uint8_t>(i + 1);
}

std::uint64_t Words::in(std::string_view text) const {
  std::uint64_t found = 0;
  const char* const start = text.data();
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const std::uint16_t pair = pair_at(start + at);
    if ((noticed_[pair >> 6] >> (pair & 63) & 1) == 0) continue;
    const std::size_t which = drawer(pair);
    for (std::size_t i = first_[which]; i < first_[which + 1]; ++i) {
      const Place& place = places_[i];
      const std::string_view word = words_[place.word];
      if (place.pair != pair || place.offset > at || text.size() - (at - place.offset) < word.size())
        continue;
      if (std::memcmp(start + at - place.offset, word.data(), word.size()) == 0)
        found |= std::uint64_t{1} << place.word;
    }
  }
  return found;
}

}  // namespace assay::spec::audit
