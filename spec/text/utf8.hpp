#pragma once
// Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#include <cstddef>
#include <string>
#include <string_view>

namespace assay::spec {

/// Bytes of the well-formed character that `text` starts with (1 to 4), or 0 when there is none.
std::size_t utf8_length(std::string_view text);

/// Bytes of the ill-formed piece that `text` starts with, for which a decoder puts one U+FFFD: as many as
/// begin some well-formed character, or 1 (Unicode 16, section 3.9, maximal subpart). Domain: not empty,
/// utf8_length is 0.
std::size_t ill_formed_length(std::string_view text);
/// Whether more bytes could make a well-formed character of all of `text`, which is none yet.
bool begins_character(std::string_view text);

/// `text` with every byte that belongs to no well-formed character replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// The one well-formed character that `text` is; 0 of an empty text.
char32_t code_point(std::string_view text);

/// What a terminal may take for a command: C0, DEL and C1 (ECMA-48).
bool is_control(char32_t point);

/// Characters without a width of their own that reorder, join or hide the text around them: bidirectional
/// controls, zero-width and separator characters, tags (Unicode, general categories Cf, Zl and Zp).
bool is_unseen(char32_t point);

}  // namespace assay::spec
