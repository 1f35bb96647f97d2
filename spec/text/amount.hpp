#pragma once
// Amounts as people type them.
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::spec {

/// What a letter behind a number multiplies by: k, M, B or G, and T, in either case: 10^3, 10^6, 10^9, 10^12.
/// Nothing for any other letter. [1]
std::optional<double> magnitude(char letter);

/// "82B", "1.5T", "300M", "4k", "82e9", "4,194,304", "4_194_304": a number without sign, then k M B G or T in
/// either case for 10^3, 10^6, 10^9, 10^9, 10^12. Commas stand between groups of three digits, underscores
/// between any. Nothing for any other text, for more than 64 bytes, and for numbers that are not finite.
std::optional<double> amount(std::string_view text);

/// A whole number as people type it, exactly: "1000", "1_000", "1,000", "1e9", "64k", "1.5M", "2B", "3T",
/// with a sign or without. Letters as `magnitude` has them, in either case, are decimal; "Ki", "Mi", "Gi",
/// "Ti" are 2^10, 2^20, 2^30, 2^40; commas and underscores as in `amount`. Nothing for any other text, for
/// more than 64 bytes, for a number that is not whole ("1.5"; "0.5Ki" is), and outside of [-2^63, 2^63).
std::optional<std::int64_t> whole_number(std::string_view text);

/// A real as TOML has it: "3e-4", "+1_000.5". Neither letters nor commas: "10m" of seconds are minutes to
/// whoever types them, and "0,003" a decimal. Nothing for any other text.
std::optional<double> real_number(std::string_view text);

/// "40%", "37.5 %" as a fraction of 1; also a plain fraction such as "0.4". Nothing for other text and for
/// plain numbers above 1, which may mean either.
std::optional<double> fraction(std::string_view text);

}  // namespace assay::spec
