// labels: gpu unit
#include "tests/impl/step/device_staging_checks.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::run::cuda_device_staging_test {
namespace {

TEST(DeviceStagingCuda, GivesWhatTheLoaderRead) {
  ASSAY_NEEDS_GPU();
  for (std::int64_t prefetch : {0, 1, 3}) {
    staging_checks::take_steps(at::kCUDA, prefetch, std::nullopt, 40, [] {});
    staging_checks::take_steps(at::kCUDA, prefetch, '\n', 40, [] {});
  }
}

// The work before the look takes far longer than a copy: a slot that was filled again too early would show
// another step's ids.
TEST(DeviceStagingCuda, KeepsAStepsBatchesWhileTheGpuIsBehind) {
  ASSAY_NEEDS_GPU();
  const at::Tensor a = at::randn({4096, 4096}, at::TensorOptions(at::kCUDA));
  staging_checks::take_steps(at::kCUDA, 1, '\n', 20, [&] {
    for (int i = 0; i < 10; ++i) a.matmul(a);
  });
}

}  // namespace
}  // namespace assay::impl::run::cuda_device_staging_test
