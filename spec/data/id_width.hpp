#pragma once
// Whether raw token ids were written in another width than the one in which they are read. Rule, bound and
// limits: spec/data/id_width.md.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::spec::data {

/// No tokenizer has more entries; the largest that we know has 901,629 (XLM-V).
inline constexpr std::int64_t largest_vocabulary = std::int64_t{1} << 20;

/// Counts 16-bit words of a file by their places within 8 bytes.
class IdWidth {
 public:
  /// Ids of which it takes so many to speak for another width.
  static constexpr std::int64_t enough = 64;

  /// Bytes of the file from `position` on. Groups of 8 bytes that are cut are left out.
  void add(std::uint64_t position, std::span<const std::byte> bytes);

  /// Bytes of an id, 2, 4 or 8, in a file that is read as ids of `width` bytes, 2 or 4, of a vocabulary of
  /// that many entries: `width` unless there is strong evidence of another.
  std::int64_t likely(std::int64_t width, std::int64_t vocabulary) const;

 private:
  struct Words {
    std::int64_t not_zero = 0;
    std::int64_t large = 0;  ///< above the high half of any id of the largest vocabulary
  };
  std::array<Words, 4> at_;                 ///< 16-bit words by place
  std::array<std::int64_t, 33> by_bits_{};  ///< 32-bit words by their number of significant bits
};

}  // namespace assay::spec::data
