#pragma once
// Amounts as people type them.
#include <optional>
#include <string_view>

namespace assay::spec {

/// What a letter behind a number multiplies by: k, M, B or G, and T, in either case: 10^3, 10^6, 10^9, 10^12.
/// Nothing for any other letter. [1]
std::optional<double> magnitude(char letter);

/// "82B", "1.5T", "300M", "4k", "82e9", "4,194,304", "4_194_304": a number without sign, then k M B G or T in
/// either case for 10^3, 10^6, 10^9, 10^9, 10^12. Commas and underscores stand between digits. Nothing for
/// any other text, for more than 64 bytes, and for numbers that are not finite.
std::optional<double> amount(std::string_view text);

/// "40%", "37.5 %" as a fraction of 1; also a plain fraction such as "0.4". Nothing for other text and for
/// plain numbers above 1, which may mean either.
std::optional<double> fraction(std::string_view text);

}  // namespace assay::spec
