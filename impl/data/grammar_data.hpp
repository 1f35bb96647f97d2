#pragma once
// The demo's data: windows of text written by the grammar of known entropy. [spec/grammar/grammar.md]
#include <cstdint>
#include <span>
#include <string>

#include "impl/data/sample_source.hpp"

namespace assay::impl::data {

/// Sample i is spec::grammar::demo().window(seed, i, T + 1), one byte a token: a newline, then whole
/// sentences, the last one cut. The lowest mean loss on such samples is spec::grammar::window_floor(demo(),
/// T).
class GrammarData : public SampleSource {
 public:
  static constexpr std::int64_t vocabulary = 256;  ///< bytes

  /// Domain: 1 <= T < 2^24, 1 <= samples <= 2^40. Errors: UserError usage outside it.
  GrammarData(std::uint64_t seed, std::int64_t T, std::int64_t samples);

  std::int64_t samples() const override { return samples_; }
  std::int64_t sequence_length() const override { return T_; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override;
  std::string description() const override;
  std::optional<double> bytes_per_token() const override { return 1; }
  /// A stretch of the grammar's text, the same for every seed, in place of a file.
  std::vector<DataFile> files() const override;

 private:
  std::uint64_t seed_;
  std::int64_t T_, samples_;
};

}  // namespace assay::impl::data
