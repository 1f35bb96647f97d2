#pragma once
// The value of a setting and its text form.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace assay::spec {

enum class KeyType { integer, number, text, choice, list };

/// A setting's value: integer, number, text (also of choices), or list of texts.
using Value = std::variant<std::int64_t, double, std::string, std::vector<std::string>>;

/// "an integer", "a number", "a text", "a list of texts", for messages.
std::string type_name(KeyType type);

/// The value as a TOML literal; numbers in their shortest form that reads back to the same bits.
std::string toml_literal(const Value& value);

/// The same for a message: cut to 80 bytes with "..." when it is longer.
std::string shown(const Value& value);

}  // namespace assay::spec
