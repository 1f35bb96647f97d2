#include "impl/generate/byte_pairs.hpp"

#include <utility>

namespace assay::impl::generate {

void BytePairs::add_token(std::string text, std::int64_t id) { tokens_.emplace(std::move(text), id); }

std::optional<std::int64_t> BytePairs::find(std::string_view text) const {
  const auto found = tokens_.find(text);
  return found == tokens_.end() ? std::nullopt : std::optional(found->second);
}

bool BytePairs::add_merge(std::string_view left, std::string_view right) {
  const auto a = find(left), b = find(right), both = find(std::string(left) += right);
  if (!a || !b || !both) return false;
  merges_.emplace(key(*a, *b), Merge{static_cast<std::int64_t>(merges_.size()), *both});
  return true;
}

void BytePairs::merge(std::vector<std::int64_t>& word) const {
  while (word.size() > 1) {
    const Merge* best = nullptr;
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = merges_.find(key(word[i], word[i + 1]));
      if (found == merges_.end() || (best && found->second.rank >= best->rank)) continue;
      best = &found->second;
      where = i;
    }
    if (!best) return;
    word[where] = best->id;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

}  // namespace assay::impl::generate
