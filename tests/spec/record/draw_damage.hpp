#pragma once
// One damage to a record, of any kind: a bit, a digit, lines or bytes that are missing, lines that stand
// twice or elsewhere. The end of the record stays.
#include <rapidcheck.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace assay::tests {

inline std::string record_text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

inline std::size_t drawn_place(std::size_t size) { return *rc::gen::inRange<std::size_t>(0, size); }

/// `lines` with their line breaks.
inline std::string damaged(std::vector<std::string> lines) {
  std::string text = record_text(lines);
  switch (*rc::gen::inRange(0, 6)) {
    case 0: {
      const auto bit = static_cast<unsigned char>(1u << *rc::gen::inRange(0, 8));
      char& byte = text[drawn_place(text.size())];
      byte = static_cast<char>(static_cast<unsigned char>(byte) ^ bit);
      return text;
    }
    case 1: {
      std::vector<std::size_t> digits;
      for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] >= '0' && text[i] <= '9') digits.push_back(i);
      char& digit = text[digits[drawn_place(digits.size())]];
      digit = static_cast<char>('0' + (digit - '0' + *rc::gen::inRange(1, 10)) % 10);
      return text;
    }
    case 2: {
      const std::size_t from = drawn_place(text.size() - 1);
      return text.erase(from, 1 + drawn_place(text.size() - 1 - from));
    }
    case 3:
      RC_PRE(lines.size() > 1);
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(drawn_place(lines.size() - 1)));
      return record_text(lines);
    case 4: {
      const auto at = static_cast<std::ptrdiff_t>(drawn_place(lines.size()));
      const std::string copy = lines[static_cast<std::size_t>(at)];
      lines.insert(lines.begin() + at, copy);
      return record_text(lines);
    }
    default: {
      RC_PRE(lines.size() > 1);
      const std::size_t one = drawn_place(lines.size()), other = drawn_place(lines.size());
      RC_PRE(one != other);
      std::swap(lines[one], lines[other]);
      return record_text(lines);
    }
  }
}

}  // namespace assay::tests
