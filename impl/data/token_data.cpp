#include "impl/data/token_data.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {

TokenData::TokenData(const std::vector<std::filesystem::path>& paths, std::optional<TokenType> stated,
                     std::int64_t vocabulary, std::int64_t T,
                     const std::vector<std::int64_t>& files_of_sources, bool by_document)
    : T_(T), first_samples_{0} {
  if (T < 1)
    throw UserError(ExitCode::usage,
                    "a sequence length of " + std::to_string(T) + " tokens; it must be at least 1");
  if (paths.empty()) throw UserError(ExitCode::usage, "no token files; name at least one");
  files_.reserve(paths.size());
  for (const std::filesystem::path& path : paths) {
    const TokenFile& file = files_.emplace_back(path, stated, vocabulary);
    file.require_width(vocabulary);
    if (file.tokens() <= T)
      throw UserError(ExitCode::bad_data,
                      "token file " + spec::quote(path.string()) + " has " + std::to_string(file.tokens()) +
                          " tokens, one sample of sequence length " + std::to_string(T) + " needs " +
                          std::to_string(T + 1) + "; shorten the sequence or take the file off the list");
    first_samples_.push_back(first_samples_.back() + (file.tokens() - 1) / T);
    if (!by_document) continue;
    if (!file.format().documents)
      file.file().refuse(
          ExitCode::usage,
          "does not say where its documents end: a Megatron file does in its .idx, raw ids do in "
          "a .ends beside them; leave data.document_ends out, or state the token that ends a "
          "document in data.end_of_document");
    document_ends_.push_back(data::document_ends(file.file(), file.format()));
  }
  for (const std::int64_t files : files_of_sources)
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<std::size_t>(files));
  if (ends_.empty()) ends_.push_back(files_.size());
}

std::vector<std::int64_t> TokenData::samples_of_sources() const {
  std::vector<std::int64_t> samples;
  std::size_t begin = 0;
  for (const std::size_t end : ends_)
    samples.push_back(first_samples_[end] - first_samples_[std::exchange(begin, end)]);
  return samples;
}

void TokenData::read(std::int64_t sample, std::span<std::int32_t> ids) const {
  check_request(sample, ids);
  const std::size_t file = file_of(sample);
  files_[file].read((sample - first_samples_[file]) * T_, ids);
}

std::size_t TokenData::file_of(std::int64_t sample) const {
  const auto after = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
  return static_cast<std::size_t>(after - first_samples_.begin() - 1);
}

std::optional<std::vector<std::int64_t>> TokenData::document_ends(std::int64_t sample) const {
  if (document_ends_.empty()) return {};
  const std::size_t file = file_of(sample);
  const std::vector<std::int64_t>& all = document_ends_[file];
  const std::int64_t first = (sample - first_samples_[file]) * T_;
  std::vector<std::int64_t> ends;
  for (auto end = std::upper_bound(all.begin(), all.end(), first); end != all.end() && *end < first + T_;
       ++end)
    if (ends.empty() || ends.back() != *end - first)
      ends.push_back(*end - first);  // one of no tokens is none
  return ends;
}

std::vector<DataFile> TokenData::files() const {
  std::vector<DataFile> files;
  for (const TokenFile& file : files_)
    files.push_back({.path = file.path().string(),
                     .bytes = file.file().bytes(),
                     .sample = file.sample(),
                     .format = file.format().description()});
  return files;
}

std::int64_t TokenData::tokens() const {
  std::int64_t sum = 0;
  for (const TokenFile& file : files_) sum += file.tokens();
  return sum;
}

// A file of k samples uses k*T + 1 tokens.
std::int64_t TokenData::unused_tokens() const {
  return tokens() - samples() * T_ - static_cast<std::int64_t>(files_.size());
}

void TokenData::verify() const {
  for (const TokenFile& file : files_) file.verify();
}

std::string TokenData::description() const {
  std::vector<std::string> formats;
  for (const TokenFile& file : files_)
    if (const std::string format = file.format().description();
        std::find(formats.begin(), formats.end(), format) == formats.end())
      formats.push_back(format);
  std::string all;
  for (const std::string& format : formats) all += (all.empty() ? "" : " and ") + format;
  return std::to_string(files_.size()) + (files_.size() == 1 ? " token file, " : " token files, ") + all +
         ", " + std::to_string(tokens()) + " tokens, " + std::to_string(samples()) + " samples of " +
         std::to_string(T_) + ", " + std::to_string(unused_tokens()) + " tokens unused";
}

}  // namespace assay::impl::data
