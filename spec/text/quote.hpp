#pragma once
// Text from outside, made fit to be printed.
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec {

/// `text` on one line, and without effect on the terminal that shows it: control characters, bytes that are
/// no UTF-8, and characters that no one sees or that turn the direction of those around them are spelled out,
/// as `\n`, `\x1b`, `\u202e`.
std::string printable(std::string_view text);

/// A message that holds names and words from outside: printable, each word that no path is as long as cut,
/// and no longer than 3,900 bytes.
std::string message_line(std::string_view text);

/// Several lines, each of them a message_line.
std::string message_lines(const std::vector<std::string>& lines);
/// `text` apart at its line breaks.
std::vector<std::string> lines_of(std::string_view text);

/// printable(text) in double quotes; of a longer text its first 80 bytes and "...".
std::string quote(std::string_view text);

/// `text` as one word of a command line that a reader may copy into a shell: as it is where nothing in it
/// means something else there, otherwise in single quotes, and printable.
std::string shell_word(std::string_view text);

}  // namespace assay::spec
