// labels: unit
#include "tests/impl/step/device_staging_checks.hpp"

namespace assay::impl::run::device_staging_test {
namespace {

TEST(DeviceStagingImpl, GivesWhatTheLoaderRead) {
  for (std::int64_t prefetch : {0, 1, 3}) {
    staging_checks::take_steps(at::kCPU, prefetch, std::nullopt, 6, [] {});
    staging_checks::take_steps(at::kCPU, prefetch, '\n', 6, [] {});
  }
}

}  // namespace
}  // namespace assay::impl::run::device_staging_test
