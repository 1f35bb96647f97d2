#pragma once
// The index that Megatron-LM writes beside its token files.
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/data/token_format.hpp"

namespace assay::impl::data {

struct MegatronIndex {
  TokenType type = TokenType::uint16;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> document_ends;  ///< tokens up to the end of each document
};

/// The index FILE.idx of FILE.bin; nothing where none stands beside it. The file's sequences must follow one
/// another from its first byte to its last. Errors: UserError bad_data for another kind of index, one that is
/// torn, or one that is not of this file.
std::optional<MegatronIndex> megatron_index(const OpenedFile& file);

}  // namespace assay::impl::data
