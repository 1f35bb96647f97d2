#pragma once
// Memory taken from the system in few large pieces.
#include <cstddef>

namespace assay::impl::cli {

/// Asks the system to back the pages that lie wholly within the `bytes` from `start` by huge ones when they
/// are written: a fault per 2 MiB, not one per 4 KiB. A hint: nothing changes where the system has none, or
/// declines. Source: madvise(2), MADV_HUGEPAGE.
void prefer_huge_pages(void* start, std::size_t bytes);

}  // namespace assay::impl::cli
