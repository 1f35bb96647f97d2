#pragma once
// Numbers of ranks in words, for messages, banners and reports.
#include <cstdint>
#include <string>

namespace assay::spec {

/// "4 ranks", "1 rank".
std::string ranks_text(std::int64_t ranks);

/// "4 ranks"; where each is made of several tensor ranks "4 data-parallel ranks of 2 tensor ranks".
std::string data_ranks_text(std::int64_t data_ranks, std::int64_t tensor_ranks);

}  // namespace assay::spec
