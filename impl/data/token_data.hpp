#pragma once
// One data set from several token files.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "impl/data/sample_source.hpp"
#include "impl/data/token_file.hpp"

namespace assay::impl::data {

/// Samples of T + 1 tokens, T apart: sample i of a file has its tokens i*T .. i*T + T, so neighbours share
/// one token and every target is predicted once. A sample never crosses files. Files follow one another in
/// the order given. The last tokens of a file that fill no sample are not used: fewer than T a file, see
/// unused_tokens().
class TokenData final : public SampleSource {
 public:
  /// `stated`: the type of raw ids, see recognise. `files_of_sources`: of a mixture, how many of the files
  /// each source has. `by_document`: document_ends() gives the ends that the formats know, which are kept in
  /// memory, 8 bytes each. Errors: UserError of TokenFile and data::document_ends; bad_data (a file shorter
  /// than one sample, ids of another width than the stated one); usage (no file, T < 1, a file that knows no
  /// ends of its documents).
  TokenData(const std::vector<std::filesystem::path>& paths, std::optional<TokenType> stated,
            std::int64_t vocabulary, std::int64_t T, const std::vector<std::int64_t>& files_of_sources = {},
            bool by_document = false);

  std::vector<std::int64_t> samples_of_sources() const override;
  std::int64_t samples() const override { return first_samples_.back(); }
  std::int64_t sequence_length() const override { return T_; }
  void read(std::int64_t sample, std::span<std::int32_t> ids) const override;
  std::optional<std::vector<std::int64_t>> document_ends(std::int64_t sample) const override;
  std::string description() const override;
  std::vector<DataFile> files() const override;

  std::int64_t tokens() const;         ///< of all files
  std::int64_t unused_tokens() const;  ///< that belong to no sample
  void verify() const;  ///< reads every token of every file. Errors: UserError of TokenFile::read

 private:
  std::size_t file_of(std::int64_t sample) const;

  std::int64_t T_;
  std::vector<TokenFile> files_;
  std::vector<std::vector<std::int64_t>> document_ends_;  ///< of each file; none unless by document
  std::vector<std::int64_t> first_samples_;               ///< of each file, and the number of all samples
  std::vector<std::size_t> ends_;                         ///< of each source: the file behind its last
};

}  // namespace assay::impl::data
