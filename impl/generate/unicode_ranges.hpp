#pragma once
// What the patterns of tokenizers say of characters, as code points.

namespace assay::impl::generate {

bool is_letter(char32_t c);  ///< \p{L}
bool is_number(char32_t c);  ///< \p{N}
/// \s of Unicode
constexpr bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}
/// Whether normalisation to NFC changes it, or may where it stands behind another character.
bool may_compose(char32_t c);

}  // namespace assay::impl::generate
