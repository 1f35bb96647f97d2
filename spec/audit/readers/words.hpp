#pragma once
// Which of several words stand in a text, found in one pass over it: most lines of a log hold none of those
// that its reader knows.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::spec::audit {

class Words {
 public:
  /// At most 64, each of three bytes or more; they live as long as this. Errors: std::logic_error on others.
  explicit Words(std::vector<std::string_view> words);
  /// Bit i: word i stands in `text`.
  std::uint64_t in(std::string_view text) const;
  bool any_in(std::string_view text) const { return in(text) != 0; }

 private:
  /// Two bytes of a word by which it is recognised.
  struct Place {
    std::uint16_t pair = 0;
    std::uint8_t word = 0, offset = 0;
  };
  static std::size_t drawer(std::uint16_t pair) { return (pair * 40503U >> 8) & 0xff; }

  std::vector<std::string_view> words_;
  std::array<std::uint64_t, 1024> noticed_{};  ///< bit p % 64 of element p / 64: two bytes p, lower one first
  std::vector<Place> places_;                  ///< by drawer
  std::array<std::uint8_t, 257> first_{};      ///< of each drawer; behind the last one
};

}  // namespace assay::spec::audit
