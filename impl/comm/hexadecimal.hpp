#pragma once
// Bytes as text, which ranks exchange.
#include <stdexcept>
#include <string>

namespace assay::impl {

inline std::string to_hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Errors: std::invalid_argument where `text` is not of pairs of hexadecimal digits.
inline std::string from_hexadecimal(const std::string& text) {
  if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::invalid_argument("not bytes in hexadecimal digits: " + text);
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace assay::impl
