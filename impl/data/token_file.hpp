#pragma once
// One token file, of any format that is read.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "impl/data/token_format.hpp"
#include "spec/data/id_width.hpp"

namespace assay::impl::data {

/// The smallest and the largest id of some tokens. Ids beyond 2^63 - 1 count as that.
struct IdRange {
  std::int64_t smallest = INT64_MAX, largest = INT64_MIN;
  void add(const IdRange& other);
};

/// A token file opened for reading, at any size (offsets have 64 bits).
class TokenFile {
 public:
  /// `stated`: the type of raw ids, see recognise. `vocabulary`: ids must be below it; 1 .. 2^31 (a uint16
  /// file may have a larger vocabulary than it can name). Errors: those of OpenedFile and recognise;
  /// UserError usage (vocabulary outside the domain).
  TokenFile(std::filesystem::path path, std::optional<TokenType> stated, std::int64_t vocabulary);

  const std::filesystem::path& path() const { return file_.path(); }
  const OpenedFile& file() const { return file_; }
  const TokenFormat& format() const { return format_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t tokens() const { return format_.tokens; }  ///< when it was opened
  const std::string& sample() const { return sample_; }   ///< spec::sample_hash, when it was opened

  /// Errors: UserError bad_data, naming the type, where nothing but the stated type says what the ids are,
  /// and they were written in another width (spec/data/id_width.md).
  void require_width(std::int64_t vocabulary) const;

  /// Reads tokens [first, first + ids.size()). Errors: UserError bad_data (an id outside the vocabulary,
  /// naming file, token, byte offset and id; the file became shorter, or other pieces of it than before are
  /// found once it was written to), io (the system cannot read); std::out_of_range (a bug).
  void read(std::int64_t first, std::span<std::int32_t> ids) const;

  /// Of tokens [first, first + count), whatever the vocabulary. Errors: as read, but for the ids.
  IdRange range(std::int64_t first, std::int64_t count) const;

  /// Reads every token once. Errors: those of read, for the first token that fails.
  void verify() const;

 private:
  std::int64_t offset(std::int64_t token) const { return format_.first_byte + token * width(format_.type); }
  std::int32_t checked(const unsigned char* bytes, std::int64_t token) const;
  void check_request(std::int64_t first, std::int64_t count) const;

  OpenedFile file_;
  /// Errors: UserError bad_data where the file was written to and holds other pieces than when it was opened.
  void require_same_content() const;

  TokenFormat format_;
  std::int64_t vocabulary_;
  spec::data::IdWidth words_;  ///< of the sampled pieces
  std::string sample_;
  /// As of when the pieces are known to be the same.
  struct Known {
    std::mutex mutex;
    OpenedFile::Stamp stamp;
  };
  std::unique_ptr<Known> known_ = std::make_unique<Known>();
};

}  // namespace assay::impl::data
