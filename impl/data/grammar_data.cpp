#include "impl/data/grammar_data.hpp"

#include <algorithm>

#include "spec/checkpoint/content_hash.hpp"
#include "spec/error.hpp"
#include "spec/grammar/demo_grammar.hpp"

namespace assay::impl::data {

GrammarData::GrammarData(std::uint64_t seed, std::int64_t T, std::int64_t samples)
    : seed_(seed), T_(T), samples_(samples) {
  if (T < 1 || T >= std::int64_t{1} << 24 || samples < 1 || samples > std::int64_t{1} << 40)
    throw UserError(ExitCode::usage,
                    "the grammar's text has sequences of 1 to 16777215 tokens and 1 to 2^40 samples, not " +
                        std::to_string(T) + " tokens and " + std::to_string(samples) + " samples");
}

void GrammarData::read(std::int64_t sample, std::span<std::int32_t> ids) const {
  check_request(sample, ids);
  const std::string text = spec::grammar::demo().window(seed_, static_cast<std::uint64_t>(sample), T_ + 1);
  std::transform(text.begin(), text.end(), ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
}

std::string GrammarData::description() const {
  return "the grammar's text, one byte a token, seed " + std::to_string(seed_) + ", " +
         std::to_string(samples_) + " samples of " + std::to_string(T_);
}

std::vector<DataFile> GrammarData::files() const {
  constexpr std::int64_t bytes = 1 << 14;
  const std::string text = spec::grammar::demo().window(0, 0, bytes);
  return {{.path = "text of the built-in grammar",
           .bytes = bytes,
           .sample = spec::content_hash(std::as_bytes(std::span(text)))}};
}

}  // namespace assay::impl::data
