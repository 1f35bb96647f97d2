#include "impl/data/token_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "spec/checkpoint/content_hash.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "range_of reads tokens as this machine's integers");

template <class T>
IdRange range_of(std::span<const unsigned char> bytes) {
  T smallest = std::numeric_limits<T>::max(), largest = std::numeric_limits<T>::min();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T id;
    std::memcpy(&id, &bytes[at], sizeof id);
    smallest = std::min(smallest, id);
    largest = std::max(largest, id);
  }
  const auto clipped = [](T id) {
    return std::in_range<std::int64_t>(id) ? static_cast<std::int64_t>(id) : INT64_MAX;
  };
  return {clipped(smallest), clipped(largest)};
}

IdRange range_of(TokenType type, std::span<const unsigned char> bytes) {
  using enum TokenType;
  switch (type) {
    case uint8:
      return range_of<std::uint8_t>(bytes);
    case int8:
      return range_of<std::int8_t>(bytes);
    case uint16:
      return range_of<std::uint16_t>(bytes);
    case int16:
      return range_of<std::int16_t>(bytes);
    case uint32:
      return range_of<std::uint32_t>(bytes);
    case int32:
      return range_of<std::int32_t>(bytes);
    case uint64:
      return range_of<std::uint64_t>(bytes);
    case int64:
      return range_of<std::int64_t>(bytes);
  }
  throw std::logic_error("a type of tokens");
}

/// spec::sample_hash of the file as it is now. `piece` is given each piece.
std::string sample_of(
    const OpenedFile& file,
    const std::function<void(std::uint64_t, std::span<const std::byte>)>& piece = [](auto, auto) {}) {
  return spec::sample_hash(static_cast<std::uint64_t>(file.bytes()),
                           [&](std::uint64_t position, std::span<std::byte> into) {
                             file.read(static_cast<std::int64_t>(position),
                                       {reinterpret_cast<unsigned char*>(into.data()), into.size()});
                             piece(position, into);
                           });
}

std::int64_t checked_vocabulary(std::int64_t vocabulary) {
  if (vocabulary < 1 || vocabulary > std::int64_t{1} << 31)
    throw UserError(ExitCode::usage,
                    "a vocabulary of " + std::to_string(vocabulary) +
                        " tokens is outside 1 .. 2147483648; correct the model's vocabulary");
  return vocabulary;
}

}  // namespace

void IdRange::add(const IdRange& other) {
  smallest = std::min(smallest, other.smallest);
  largest = std::max(largest, other.largest);
}

TokenFile::TokenFile(std::filesystem::path path, std::optional<TokenType> stated, std::int64_t vocabulary)
    : file_(std::move(path)),
      format_(recognise(file_, stated)),
      vocabulary_(checked_vocabulary(vocabulary)),
      sample_(sample_of(file_, [this](std::uint64_t position, std::span<const std::byte> bytes) {
        words_.add(position, bytes);
      })) {
  known_->stamp = file_.stamp();
}

void TokenFile::require_width(std::int64_t vocabulary) const {
  const std::int64_t stated = width(format_.type), likely = words_.likely(stated, vocabulary);
  if (!format_.by_word || likely == stated) return;
  const std::string type(name(format_.type));
  const std::string what =
      likely == 2   ? "uint16: read as uint32, its ids are beyond any vocabulary; state \"uint16\""
      : likely == 4 ? "uint32: read as uint16, every second id is the high half of one; state \"uint32\""
                    : "ids of 8 bytes, as numpy writes them by default; write it anew, by "
                      "ids.astype(\"uint32\").tofile(...) or numpy.save";
  fs::path json = file_.path();
  file_.refuse(ExitCode::bad_data,
               "was stated to be " + type + " and holds " + what + " (if it is " + type +
                   " all the same, let " + spec::quote(json.replace_extension(".json").string()) +
                   " beside it say so: {\"format\": \"assay-tokens-1\", \"dtype\": \"" + type + "\"})");
}

void TokenFile::require_same_content() const {
  const OpenedFile::Stamp now = file_.stamp_now();
  const std::scoped_lock lock(known_->mutex);
  if (now == known_->stamp) return;
  if (now.bytes != file_.bytes() || sample_of(file_) != sample_)
    file_.refuse(ExitCode::bad_data,
                 "was overwritten since it was opened and " +
                     (now.bytes == file_.bytes() ? "holds other tokens"
                                                 : "has " + spec::grouped(now.bytes) + " bytes, not the " +
                                                       spec::grouped(file_.bytes()) + " that it had") +
                     "; put back what it held and go on by `assay resume`, or train another run on it");
  known_->stamp = now;
}

std::int32_t TokenFile::checked(const unsigned char* bytes, std::int64_t token) const {
  const std::int64_t size = width(format_.type);
  std::uint64_t id = little_endian(bytes, size);
  const bool negative = is_signed(format_.type) && (id >> (8 * size - 1) & 1) != 0;
  if (!negative && id < static_cast<std::uint64_t>(vocabulary_)) return static_cast<std::int32_t>(id);
  if (negative && size < 8) id |= ~std::uint64_t{0} << (8 * size);
  const std::string shown = negative ? std::to_string(static_cast<std::int64_t>(id)) : std::to_string(id);
  file_.refuse(ExitCode::bad_data,
               "has id " + shown + " at token " + std::to_string(token) + " (byte offset " +
                   std::to_string(offset(token)) + "), outside the vocabulary of " +
                   std::to_string(vocabulary_) + "; it was made for another vocabulary" +
                   (format_.has_header() ? "" : ", or its dtype is not " + std::string(name(format_.type))));
}

void TokenFile::check_request(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || count > tokens() || first > tokens() - count)
    throw std::out_of_range("tokens " + std::to_string(first) + " + " + std::to_string(count) + " of " +
                            std::to_string(tokens()));
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> ids) const {
  const auto count = static_cast<std::int64_t>(ids.size()), size = width(format_.type);
  check_request(first, count);
  std::array<unsigned char, 1 << 16> buffer;  // a multiple of all widths
  const std::int64_t step = static_cast<std::int64_t>(buffer.size()) / size;
  for (std::int64_t done = 0; done < count; done += step) {
    const std::int64_t now = std::min(step, count - done);
    file_.read(offset(first + done), std::span(buffer).first(static_cast<std::size_t>(now * size)));
    for (std::int64_t i = 0; i < now; ++i)
      ids[static_cast<std::size_t>(done + i)] =
          checked(&buffer[static_cast<std::size_t>(i * size)], first + done + i);
  }
  require_same_content();
}

IdRange TokenFile::range(std::int64_t first, std::int64_t count) const {
  check_request(first, count);
  const std::int64_t size = width(format_.type), step = (1 << 20) / size;
  std::vector<unsigned char> buffer(static_cast<std::size_t>(std::min(step, count) * size));
  IdRange range;
  for (std::int64_t done = 0; done < count; done += step) {
    const auto bytes = std::span(buffer).first(static_cast<std::size_t>(std::min(step, count - done) * size));
    file_.read(offset(first + done), bytes);
    range.add(range_of(format_.type, bytes));
  }
  require_same_content();
  return range;
}

void TokenFile::verify() const {
  constexpr std::int64_t step = 1 << 20;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(step, tokens())));
  for (std::int64_t first = 0; first < tokens(); first += step)
    read(first, std::span(ids).first(static_cast<std::size_t>(std::min(step, tokens() - first))));
}

}  // namespace assay::impl::data
