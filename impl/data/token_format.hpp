#pragma once
// Formats of token files, known by their content.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/data/opened_file.hpp"

namespace assay::impl::data {

/// Little-endian integers.
enum class TokenType { uint8, int8, uint16, int16, uint32, int32, uint64, int64 };

/// "uint16" or "uint32", which data.dtype may state. Errors: UserError usage, naming the two.
TokenType token_type(std::string_view name);
std::string_view name(TokenType type);
std::int64_t width(TokenType type);  ///< [bytes] of a token
bool is_signed(TokenType type);
std::optional<TokenType> type_called(std::string_view name);  ///< any of TokenType

/// Most ends of documents, and most sequences, that a file of `tokens` tokens is believed to have: as many,
/// and some empty ones.
constexpr std::int64_t most_entries(std::int64_t tokens) { return tokens + 65'536; }

/// Where the ids of a file are and what they are.
struct TokenFormat {
  std::string_view container;  ///< "raw", "llm.c", "Megatron", "npy"
  TokenType type = TokenType::uint16;
  std::int64_t first_byte = 0;  ///< of the first token
  std::int64_t tokens = 0;
  std::optional<std::int64_t> documents;  ///< where the file, or one beside it, says where they end
  bool by_word = false;                   ///< nothing but the stated type says what the ids are

  bool has_header() const { return container != "raw"; }
  std::string description() const;  ///< "uint16", "llm.c uint16"
};

/// The format of `file`:
/// - llm.c: 256 int32 of header, magic 20240520 version 1 (uint16) or 20240801 version 7 (uint32);
/// - Megatron: FILE.idx beside FILE.bin, magic "MMIDIDX", version 1; every sequence and document of the index
///   is compared with the file;
/// - npy: version 1 to 3, one row of integers;
/// - raw ids otherwise, of type `stated`, or of what the FILE.json says that recipes/own-text/tokenise.py or
///   `assay data convert` writes.
/// Errors: UserError bad_data (text, JSON, Parquet, archives and pickles, each with what to run; a header
/// that is torn or of a kind that is not read; a size that is no multiple of the width), usage (raw ids of no
/// known type; a stated type that is not the file's own).
TokenFormat recognise(const OpenedFile& file, std::optional<TokenType> stated);

/// Of each document, the tokens up to its end; empty where nothing says so. Errors: UserError bad_data.
std::vector<std::int64_t> document_ends(const OpenedFile& file, const TokenFormat& format);

}  // namespace assay::impl::data
