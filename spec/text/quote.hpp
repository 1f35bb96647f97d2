#pragma once
// Text from outside, made fit for a one-line error message.
#include <string>
#include <string_view>

namespace assay::spec {

/// `text` in double quotes, each control character and each byte that is no UTF-8 shown as '?', cut to at
/// most 80 bytes with "..." when it is longer.
std::string quote(std::string_view text);

/// `text` as one word of a command line that a reader may copy into a shell: as it is where nothing in it
/// means something else there, otherwise in single quotes. Control characters and bytes that are no UTF-8 are
/// shown as '?'.
std::string shell_word(std::string_view text);

}  // namespace assay::spec
