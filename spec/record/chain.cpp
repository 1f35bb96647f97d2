#include "spec/record/chain.hpp"

#include <optional>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "spec/checkpoint/slice_hash.hpp"

namespace assay::spec::record {
namespace {

constexpr std::string_view before_hash = ",\"chain\":\"", behind_hash = "\"}";
constexpr std::size_t hash_digits = 16;

std::uint64_t hash_behind(std::uint64_t before, std::string_view event) {
  return XXH3_64bits_withSeed(event.data(), event.size(), before);
}

/// Of digits as hash_text writes them; nothing for any other text.
std::optional<std::uint64_t> number_of(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return std::nullopt;
    number = number << 4 | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return number;
}

/// What the next line is hashed behind. A function of the one line alone, so that a damaged line is named
/// once, and a record is gone on with behind its last line without reading the others.
std::uint64_t end_of(const LineParts& line) {
  const auto stated = line.hash.empty() ? std::nullopt : number_of(line.hash);
  return stated ? *stated : hash_behind(0, line.event);
}

}  // namespace

LineParts parts_of(std::string_view line) {
  constexpr std::size_t length = before_hash.size() + hash_digits + behind_hash.size();
  if (line.size() > length && line.ends_with(behind_hash)) {
    const std::size_t event = line.size() - length;
    if (line.substr(event).starts_with(before_hash))
      return {line.substr(0, event), line.substr(event + before_hash.size(), hash_digits)};
  }
  return {line.substr(0, line.size() - (line.ends_with('}') ? 1 : 0)), {}};
}

std::string Chain::line_of(std::string_view event) {
  event.remove_suffix(1);
  last_ = hash_behind(last_, event);
  begun_ = true;
  std::string line(event);
  return line.append(before_hash).append(hash_text(last_)).append(behind_hash);
}

/// Whether it is as it was written, and behind the line before; or the first of another record, which may
/// have been put behind this one, and is not the first once more.
bool Chain::takes(std::string_view line) {
  const LineParts parts = parts_of(line);
  const std::uint64_t before = last_;
  const bool was_begun = begun_;
  begun_ = begun_ || !parts.hash.empty();
  last_ = end_of(parts);
  if (parts.hash.empty()) return !was_begun;
  if (number_of(parts.hash) != last_) return false;  // no hash that was written
  return last_ == hash_behind(before, parts.event) ||
         (last_ == hash_behind(0, parts.event) && last_ != before);
}

Link Chain::follow(std::string_view line, bool ended) {
  const Chain before = *this;
  if (takes(line)) return Link::right;
  if (ended || !before.begun_) return Link::broken;
  // Of a line that was cut off its beginning is left. Where all of it stands there, its line break is
  // damaged.
  *this = before;
  if (!line.empty() && takes(line.substr(0, line.size() - 1))) return Link::broken;
  *this = before;
  return Link::cut_off;
}

void Chain::go_on_behind(std::string_view line) { last_ = end_of(parts_of(line)); }

std::string Chain::hash() const { return hash_text(last_); }

}  // namespace assay::spec::record
