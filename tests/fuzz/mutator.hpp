#pragma once
// Blind changes of inputs, the same for the same seed.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace assay::fuzz {

using Input = std::vector<std::uint8_t>;

inline constexpr const char* tokens[] = {
    "0",    "-1",     "1e999",    "nan",     "inf",    "99999999999999999999",
    ",",    "|",      ": ",       "\n",      "\r",     "{",
    "}",    "[",      "]",        "\"",      "%",      "=",
    "loss", "step",   "\x1b[31m", "\\u0000", "\xff",   "null",
    "true", "1e-400", "'",        "#",       "\"\"\"", "."};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Input mutate(const std::vector<Input>& corpus) {
    Input input = corpus[below(corpus.size())];
    for (std::size_t i = 1 + below(6); i > 0; --i) change(input, corpus);
    if (input.size() > 65536) input.resize(65536);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  void change(Input& input, const std::vector<Input>& corpus) {
    const auto at = [&] { return input.begin() + static_cast<std::ptrdiff_t>(below(input.size() + 1)); };
    const std::size_t length = 1 + below(below(8) == 0 ? 256 : 8);
    if (input.empty()) input.push_back(static_cast<std::uint8_t>(random_()));
    switch (below(7)) {
      case 0:
        input[below(input.size())] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        input[below(input.size())] = static_cast<std::uint8_t>(random_());
        break;
      case 2: {
        const auto from = at();
        input.erase(from, from + static_cast<std::ptrdiff_t>(
                                     std::min(length, static_cast<std::size_t>(input.end() - from))));
        break;
      }
      case 3: {
        const std::string token = tokens[below(std::size(tokens))];
        input.insert(at(), token.begin(), token.end());
        break;
      }
      case 4: {  // a piece of it, again
        const std::size_t from = below(input.size());
        const Input piece(input.begin() + static_cast<std::ptrdiff_t>(from),
                          input.begin() + static_cast<std::ptrdiff_t>(std::min(from + length, input.size())));
        input.insert(at(), piece.begin(), piece.end());
        break;
      }
      case 5: {  // a piece of another
        const Input& other = corpus[below(corpus.size())];
        if (other.empty()) break;
        const std::size_t from = below(other.size());
        input.insert(at(), other.begin() + static_cast<std::ptrdiff_t>(from),
                     other.begin() + static_cast<std::ptrdiff_t>(std::min(from + 16 * length, other.size())));
        break;
      }
      default:
        input.resize(below(input.size() + 1));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace assay::fuzz
