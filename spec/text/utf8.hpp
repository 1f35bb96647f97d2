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

}  // namespace assay::spec
