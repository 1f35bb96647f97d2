#pragma once
// Columns and lists of the tables and JSON of `assay bench`.
#include <string>

#include "spec/text/quantity.hpp"

namespace assay::impl::cli {

/// `text` in a column of `width`; one space stays beside what is wider.
inline std::string left_aligned(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

inline std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

/// amount / seconds in `unit`, in three significant digits; "-" where nothing was done.
inline std::string rate(double amount, double seconds, double unit) {
  if (!(amount > 0) || !(seconds > 0)) return "-";
  const double value = amount / seconds / unit;
  return spec::fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

/// A JSON array, each element on a line of its own.
template <class List, class Text>
std::string joined_json(const List& list, Text text) {
  std::string out = "[";
  for (const auto& each : list) out += (out.size() == 1 ? "\n  " : ",\n  ") + text(each);
  return out + "]";
}

}  // namespace assay::impl::cli
