#pragma once
// Token files of other programs as raw ids of ours.
#include <cstdint>
#include <filesystem>
#include <functional>

#include "impl/data/token_file.hpp"

namespace assay::impl::cli {

struct Converted {
  data::TokenType type = data::TokenType::uint16;  ///< uint32 where an id needs it
  std::int64_t tokens = 0, documents = 0;          ///< of no documents where `from` does not say their ends
};

/// Writes the ids of `from` to the new file `to`, their type and number to a .json beside it and, where
/// known, the document ends to an .ends. `to` is there only when all of them are, flushed to the disk; where
/// it fails nothing is left. Errors: UserError usage (one of the names is taken, or not one of token files),
/// bad_data (an id that is negative or above 2^31 - 1; those of TokenFile), io (the disk).
Converted convert_tokens(const data::TokenFile& from, const std::filesystem::path& to,
                         const std::function<void(std::int64_t done, std::int64_t all)>& progress = {});

}  // namespace assay::impl::cli
