#pragma once
// Characters that chat tools, word processors and pages put in the place of those that a trainer printed.
#include <string>
#include <string_view>

namespace assay::spec::audit {

/// Whether `text` holds a character or an entity of HTML ("&quot;") that `with_plain_characters` puts in
/// another way, quotes at least where no straight ones stand: where it does not, nothing changes.
bool may_be_odd(std::string_view text);

/// `text` with blanks for blanks of any width, nothing for characters of no width, ' and " for typographic
/// quotes, - for dashes and minus signs, ASCII for full-width forms, and the sign for an entity of HTML.
/// Quotes stay as they are where the line has straight ones of the same kind: there they stand within a text.
/// All else is kept, bytes that are no UTF-8 too.
std::string with_plain_characters(std::string_view text);

/// The ASCII character that stands for the one, or the entity, that `text` starts with, and the bytes of that
/// one; 0: it is kept, -1: nothing stands for it. Of quotes only with `quotes`, and `double_quotes`.
int plain_at(std::string_view text, bool quotes, bool double_quotes, std::size_t& size);

/// "U+00A0" of the character that `text` starts with; empty of ASCII, and of what is no UTF-8.
std::string odd_name(std::string_view text);

}  // namespace assay::spec::audit
