#pragma once
// Token files for tests, and what a call's error says.
#include <cstdint>
#include <string>
#include <vector>

#include "impl/data/token_file.hpp"
#include "spec/error.hpp"

namespace assay::tests {

/// `ids` as the bytes of a token file.
inline std::string token_bytes(const std::vector<std::uint32_t>& ids, impl::data::TokenType type) {
  std::string bytes;
  for (const std::uint32_t id : ids)
    for (std::int64_t i = 0; i < impl::data::width(type); ++i)
      bytes.push_back(static_cast<char>(id >> (8 * i) & 0xFF));
  return bytes;
}

struct Refusal {
  int code = 0;  ///< 0: nothing was refused
  std::string message;
  bool says(const std::string& text) const { return message.find(text) != std::string::npos; }
};

/// The UserError that `call` throws.
template <class Call>
Refusal user_refusal(Call&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {};
}

}  // namespace assay::tests
