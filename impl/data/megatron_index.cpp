#include "impl/data/megatron_index.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "spec/text/quote.hpp"

namespace assay::impl::data {
namespace {

using std::string_view_literals::operator""sv;
constexpr std::string_view magic = "MMIDIDX\0\0"sv;
constexpr std::int64_t head = 34;  // magic, version (8), dtype (1), sequences (8), entries of documents (8)

TokenType type_of_code(const OpenedFile& index, unsigned code) {
  constexpr std::array types = {TokenType::uint8, TokenType::int8, TokenType::int16, TokenType::int32,
                                TokenType::int64};
  if (code >= 1 && code <= types.size()) return types[code - 1];
  if (code == 8) return TokenType::uint16;
  index.refuse(ExitCode::bad_data, "has dtype code " + std::to_string(code) +
                                       (code == 6 || code == 7 ? ", floating-point numbers" : "") +
                                       "; token ids are integers: codes 1 to 5 and 8");
}

/// `count` little-endian numbers from `offset` on.
std::vector<std::int64_t> numbers(const OpenedFile& index, std::int64_t offset, std::int64_t count,
                                  std::int64_t width) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count * width));
  index.read(offset, bytes);
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(
        static_cast<std::int64_t>(little_endian(&bytes[static_cast<std::size_t>(i * width)], width)));
  return out;
}

MegatronIndex read_index(const OpenedFile& index, const OpenedFile& file) {
  const std::string begin = index.beginning(head);
  if (begin.starts_with("TNTIDX"))
    index.refuse(ExitCode::bad_data,
                 "is an index of the older kind (TNTIDX), which is not read; tokenise the text again with "
                 "Megatron's preprocess_data.py, --dataset-impl mmap");
  if (!begin.starts_with(magic))
    index.refuse(ExitCode::bad_data, "is no index of Megatron's and stands beside " +
                                         spec::quote(file.path().string()) +
                                         "; write both again, or move it away if it is another program's");
  const auto at = [&](std::int64_t offset, std::int64_t width) {
    return little_endian(reinterpret_cast<const unsigned char*>(begin.data()) + offset, width);
  };
  const auto torn = [&](const std::string& what) {
    index.refuse(ExitCode::bad_data, what + "; it was cut off, or is not of this file: write both again");
  };
  if (static_cast<std::int64_t>(begin.size()) < head) torn("ends within its header");
  if (at(9, 8) != 1)
    index.refuse(ExitCode::bad_data, "is of version " + std::to_string(at(9, 8)) + "; version 1 is read");
  MegatronIndex out;
  out.type = type_of_code(index, static_cast<unsigned>(at(17, 1)));
  const std::uint64_t room = static_cast<std::uint64_t>(index.bytes());
  if (at(18, 8) > room || at(26, 8) > room) torn("is shorter than what its header counts");
  const auto sequences = static_cast<std::int64_t>(at(18, 8)), entries = static_cast<std::int64_t>(at(26, 8));
  if (std::max(sequences, entries) > most_entries(file.bytes() / width(out.type)))
    torn("counts " + std::to_string(std::max(sequences, entries)) + " sequences and documents, more than " +
         spec::quote(file.path().string()) + " has tokens");
  const std::int64_t pointers = head + 4 * sequences, documents = pointers + 8 * sequences,
                     end = documents + 8 * entries;
  // Behind it may stand one byte for each sequence: its mode.
  if (end > index.bytes() || (end < index.bytes() && end + sequences != index.bytes()))
    torn("has " + std::to_string(index.bytes()) + " bytes where its header counts " + std::to_string(end));
  if (entries < 1) torn("names no document");
  const std::vector<std::int64_t> borders = numbers(index, documents, entries, 8);
  if (borders.front() != 0 || borders.back() != sequences || !std::is_sorted(borders.begin(), borders.end()))
    torn("has documents that do not cover its " + std::to_string(sequences) + " sequences in order");

  constexpr std::int64_t step = 1 << 17;
  auto next = borders.begin() + 1;
  while (next != borders.end() && *next == 0) out.document_ends.push_back(0), ++next;
  for (std::int64_t first = 0; first < sequences; first += step) {
    const std::int64_t count = std::min(step, sequences - first);
    const auto sizes = numbers(index, head + 4 * first, count, 4),
               places = numbers(index, pointers + 8 * first, count, 8);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::int64_t sequence = first + static_cast<std::int64_t>(i);
      if (places[i] != out.tokens * width(out.type))
        torn("has sequence " + std::to_string(sequence) + " at byte " + std::to_string(places[i]) +
             ", where the ones before it end at " + std::to_string(out.tokens * width(out.type)));
      if (sizes[i] > INT32_MAX) torn("has a sequence of negative length");
      out.tokens += sizes[i];
      while (next != borders.end() && *next == sequence + 1) out.document_ends.push_back(out.tokens), ++next;
    }
  }
  if (out.tokens * width(out.type) != file.bytes())
    torn("counts " + std::to_string(out.tokens) + " tokens of " + std::string(name(out.type)) + ", " +
         std::to_string(out.tokens * width(out.type)) + " bytes, and " + spec::quote(file.path().string()) +
         " has " + std::to_string(file.bytes()));
  return out;
}

}  // namespace

std::optional<MegatronIndex> megatron_index(const OpenedFile& file) {
  std::filesystem::path beside = file.path();
  if (beside.extension() != ".bin") return {};
  beside.replace_extension(".idx");
  std::error_code unknown;
  if (!std::filesystem::exists(beside, unknown)) return {};
  return read_index(OpenedFile(beside), file);
}

}  // namespace assay::impl::data
