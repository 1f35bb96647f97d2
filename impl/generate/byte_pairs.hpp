#pragma once
// Byte-pair encoding: which neighbours of a word are merged, in which order (Sennrich et al.,
// arXiv:1508.07909; of bytes: Radford et al., GPT-2).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::impl::generate {

class BytePairs {
 public:
  /// A token's text, as the file spells it.
  void add_token(std::string text, std::int64_t id);
  /// The next merge in rank. Returns whether both parts and what they give are tokens.
  bool add_merge(std::string_view left, std::string_view right);

  std::optional<std::int64_t> find(std::string_view text) const;

  /// A word's tokens from those of its smallest parts: as long as two neighbours have a merge, those of the
  /// lowest rank, the leftmost first.
  void merge(std::vector<std::int64_t>& word) const;

 private:
  struct Merge {
    std::int64_t rank, id;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  static std::uint64_t key(std::int64_t left, std::int64_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
  }

  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> tokens_;
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace assay::impl::generate
