#!/usr/bin/env python3
"""Writes impl/generate/unicode_ranges.cpp: the characters that tokenizers' patterns tell apart. `ci/unicode_ranges.py > FILE`."""
import sys
import unicodedata


def ranges(holds):
    out = []
    for code in range(sys.maxunicode + 1):
        if not holds(chr(code)):
            continue
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def composed():
    """What NFC changes, or may change behind another character."""
    seconds = set()
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    jamo = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    return lambda c: c in seconds or c in jamo or not unicodedata.is_normalized("NFC", c)


def table(name, holds):
    pairs = [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(holds)]
    lines, line = [], "   "
    for pair in pairs:
        if len(line) + len(pair) + 2 > 109:
            lines.append(line)
            line = "   "
        line += f" {pair},"
    return f"constexpr Range {name}[] = {{\n" + "\n".join([*lines, line]).rstrip(",") + "};\n"


print(f"""// Made by ci/unicode_ranges.py of Unicode {unicodedata.unidata_version}.
// clang-format off
#include "impl/generate/unicode_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace assay::impl::generate {{

namespace {{
struct Range {{
  char32_t first, last;
}};
{table("letters", lambda c: unicodedata.category(c)[0] == "L")}{table("numbers", lambda c: unicodedata.category(c)[0] == "N")}{table("composed", composed())}
template <class Ranges>
bool within(const Ranges& ranges, char32_t c) {{
  const auto* const behind = std::upper_bound(std::begin(ranges), std::end(ranges), c, [](char32_t each, const Range& range) {{ return each < range.first; }});
  return behind != std::begin(ranges) && c <= (behind - 1)->last;
}}
}}  // namespace

bool is_letter(char32_t c) {{ return within(letters, c); }}
bool is_number(char32_t c) {{ return within(numbers, c); }}
bool may_compose(char32_t c) {{ return within(composed, c); }}

}}  // namespace assay::impl::generate""")
