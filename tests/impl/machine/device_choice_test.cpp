// labels: unit fault
#include "impl/machine/device_choice.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "spec/error.hpp"

namespace assay::impl::run::device_choice_test {
namespace {

constexpr std::int64_t GiB = std::int64_t{1} << 30;

GpuFacts h200() {
  return {.devices = 1,
          .driver_cuda = 13000,
          .runtime_cuda = 13000,
          .name = "NVIDIA H200",
          .major = 9,
          .minor = 0,
          .free_bytes = 139 * GiB,
          .memory_bytes = 140 * GiB};
}

GpuFacts with(const std::function<void(GpuFacts&)>& change) {
  GpuFacts facts = h200();
  change(facts);
  return facts;
}

/// Every fault of a GPU, with a word that its line must have.
std::vector<std::pair<GpuFacts, std::string>> faults() {
  return {
      {{.runtime_cuda = 13000, .kernels = false}, "without CUDA kernels (ASSAY_CUDA=OFF"},
      {with([](GpuFacts& f) { f.kernels = false, f.code_runs = false; }),
       "run .toolchain/bin/cmake --preset release, then .toolchain/bin/cmake --build --preset release"},
      {{.error = "CUDA driver version is insufficient", .driver_cuda = 0, .runtime_cuda = 13000},
       "no NVIDIA driver"},
      {{.error = "CUDA driver version is insufficient", .driver_cuda = 12040, .runtime_cuda = 13000},
       "runs CUDA up to 12.4, this program needs 13.0: update the driver"},
      {{.error = "no CUDA-capable device is detected", .driver_cuda = 13000, .runtime_cuda = 13000},
       "shows no GPU (no CUDA-capable device is detected); look at nvidia-smi"},
      {with([](GpuFacts& f) { f.name = "Tesla V100", f.major = 7; }),
       "Tesla V100 is too old: compute capability 7.0, and at least 8.0"},
      {with([](GpuFacts& f) { f.name = "NVIDIA B200", f.major = 10, f.code_runs = false; }),
       "without code for NVIDIA B200 (compute capability 10.0): build it with "
       "-DASSAY_CUDA_ARCHITECTURES=100-real"},
      {with([](GpuFacts& f) { f.prohibited = true; }), "compute mode Prohibited"},
      {with([](GpuFacts& f) { f.exclusive = true, f.error = "CUDA-capable device(s) is/are busy"; }),
       "is busy: its compute mode lets in one process"},
      {with([](GpuFacts& f) { f.error = "unspecified launch failure"; }),
       "NVIDIA H200 cannot be used: unspecified launch failure"},
      {with([](GpuFacts& f) { f.free_bytes = 5 * GiB; }),
       "is busy: other processes hold 135 GiB of its 140 GiB"},
  };
}

TEST(DeviceChoiceImpl, EachFaultOfAGpuHasOneLineOfItsOwn) {
  EXPECT_EQ(gpu_fault(h200()), "");
  for (const auto& [facts, word] : faults()) {
    const std::string line = gpu_fault(facts);
    EXPECT_NE(line.find(word), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST(DeviceChoiceImpl, AGpuThatWasAskedForAndCannotBeUsedIsAnErrorThatOffersTheCpu) {
  for (const auto& [facts, word] : faults()) {
    try {
      choose_device(spec::Device::cuda, facts);
      ADD_FAILURE() << word;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      const std::string line = error.what();
      EXPECT_NE(line.find(word), std::string::npos) << line;
      EXPECT_NE(line.find("compute.device=cpu trains on the CPU"), std::string::npos) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
  }
}

TEST(DeviceChoiceImpl, AutoTakesTheCpuAndSaysWhyUnlessThereIsNoDriver) {
  for (const auto& [facts, word] : faults()) {
    const DeviceChoice choice = choose_device(spec::Device::automatic, facts);
    EXPECT_EQ(choice.device, at::kCPU);
    if (facts.driver_cuda == 0) {
      EXPECT_FALSE(choice.notice);
      continue;
    }
    ASSERT_TRUE(choice.notice) << word;
    EXPECT_EQ(choice.notice->find("training on the CPU: "), 0u);
    EXPECT_NE(choice.notice->find(word), std::string::npos) << *choice.notice;
  }
}

TEST(DeviceChoiceImpl, AUsableGpuIsTakenWithANoticeWhereOthersHoldHalfOfIt) {
  const DeviceChoice alone = choose_device(spec::Device::automatic, h200());
  EXPECT_EQ(alone.device, at::Device(at::kCUDA, 0));
  EXPECT_FALSE(alone.notice);
  const DeviceChoice shared =
      choose_device(spec::Device::cuda, with([](GpuFacts& f) { f.free_bytes = 60 * GiB; }));
  EXPECT_EQ(shared.device, at::Device(at::kCUDA, 0));
  EXPECT_NE(shared.notice.value_or("").find("80.0 GiB of its 140 GiB"), std::string::npos);
  EXPECT_EQ(choose_device(spec::Device::cpu, h200()).device, at::kCPU);
}

}  // namespace
}  // namespace assay::impl::run::device_choice_test
