#include "impl/cli/doctor/huge_pages.hpp"

#include <memory>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace assay::impl::cli {

void prefer_huge_pages([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (std::align(page, page, start, bytes)) madvise(start, bytes / page * page, MADV_HUGEPAGE);
#endif
}

}  // namespace assay::impl::cli
