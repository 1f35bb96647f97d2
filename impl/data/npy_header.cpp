#include "impl/data/npy_header.hpp"

#include <charconv>
#include <string_view>

#include "spec/text/quote.hpp"

namespace assay::impl::data {
namespace {

/// What stands behind 'key': in the dictionary, up to `end`, without blanks around it.
std::string_view entry(std::string_view text, std::string_view key, char end) {
  const std::size_t found = text.find("'" + std::string(key) + "'");
  if (found == std::string_view::npos) return {};
  const std::size_t colon = text.find(':', found), stop = text.find(end, colon);
  if (colon == std::string_view::npos || stop == std::string_view::npos) return {};
  std::string_view value = text.substr(colon + 1, stop - colon - 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  return value;
}

TokenType type_of_descr(const OpenedFile& file, std::string_view descr) {
  constexpr std::pair<std::string_view, TokenType> types[] = {
      {"'|u1'", TokenType::uint8},  {"'|i1'", TokenType::int8},   {"'<u2'", TokenType::uint16},
      {"'<i2'", TokenType::int16},  {"'<u4'", TokenType::uint32}, {"'<i4'", TokenType::int32},
      {"'<u8'", TokenType::uint64}, {"'<i8'", TokenType::int64}};
  for (const auto& [word, type] : types)
    if (word == descr) return type;
  file.refuse(ExitCode::bad_data, "is a .npy of type " + std::string(descr) +
                                      "; token ids are little-endian integers: "
                                      "numpy.save(\"tokens.npy\", ids.astype(\"<u4\"))");
}

}  // namespace

std::optional<TokenFormat> npy_header(const OpenedFile& file) {
  const std::string begin = file.beginning(12);
  if (!begin.starts_with("\x93NUMPY")) return {};
  const auto torn = [&](const std::string& what) {
    file.refuse(ExitCode::bad_data, "is a .npy " + what + "; write it again");
  };
  if (begin.size() < 12) torn("that ends within its header");
  const int version = begin[6];
  if (version < 1 || version > 3) torn("of version " + std::to_string(version) + ", which is not read");
  const std::int64_t digits = version == 1 ? 2 : 4, first = 8 + digits;
  const auto length = static_cast<std::int64_t>(
      little_endian(reinterpret_cast<const unsigned char*>(begin.data()) + 8, digits));
  if (length > 1 << 16 || first + length > file.bytes()) torn("that ends within its header");
  const std::string all = file.beginning(first + length), text = all.substr(static_cast<std::size_t>(first));

  TokenFormat format{.container = "npy", .first_byte = first + length, .documents = {}};
  format.type = type_of_descr(file, entry(text, "descr", ','));
  std::string_view shape = entry(text, "shape", ')');
  if (shape.empty() || shape.front() != '(') torn("whose header names no shape");
  const char* digit = shape.data() + 1;
  const auto [stop, error] = std::from_chars(digit, shape.data() + shape.size(), format.tokens);
  if (error != std::errc() || std::string_view(stop, shape.data() + shape.size()) != ",")
    file.refuse(ExitCode::bad_data, "is a .npy of shape " + std::string(shape) +
                                        ")"
                                        "; token ids stand in one row: numpy.save(\"tokens.npy\", "
                                        "ids.reshape(-1))");
  const std::int64_t rest = file.bytes() - format.first_byte;
  if (format.tokens < 1) torn("of no token");
  if (format.tokens > rest || format.tokens * width(format.type) != rest)
    torn("whose header counts " + std::to_string(format.tokens) + " ids of " +
         std::to_string(width(format.type)) + " bytes, and " + std::to_string(rest) + " bytes follow");
  return format;
}

}  // namespace assay::impl::data
