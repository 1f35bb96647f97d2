// labels: gpu
// What steps take on a GPU, by the caching allocator, against the plan; the settings of recompute give the
// same bits there.
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "impl/params/step_arena.hpp"
#include "spec/error.hpp"
#include "spec/plan/plan.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::cuda_memory_plan_test {
namespace {

using spec::Recompute;

/// Large enough that the allocator's rounding and cuDNN's small buffers do not count: 110 million parameters,
/// 8,192 tokens a pass.
spec::memory::Setting setting(bool grouped, Recompute recompute) {
  spec::memory::Setting out;
  spec::ModelSpec& model = out.model;
  model.name = "medium", model.family = grouped ? spec::Family::qwen3 : spec::Family::qwen2;
  model.vocab = grouped ? 50257 : 32000;  // the first is padded for the head's products
  model.width = 1024, model.layers = 4, model.heads = 8, model.kv_heads = grouped ? 2 : 8;
  model.head_dim = 128, model.ffn = 2816, model.context = 1024;
  model.qk_norm = grouped, model.qkv_bias = !grouped;
  out.dtype = Dtype::bf16, out.machine = spec::memory::Machine::cuda, out.recompute = recompute;
  out.micro = 8, out.sequence_length = 1024, out.micro_batches = 2;
  return out;
}

std::int64_t allocated_bytes(bool peak) {
  const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto bytes = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[all];
  return peak ? bytes.peak : bytes.current;
}

run::StepSettings step_settings() {
  return {
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 1, .z_loss = 1e-4};
}

/// Documents of 200 tokens, fewer than there are places for.
void tell_apart(reference::Batch& batch) {
  for (std::int64_t n = 0; n < batch.B * batch.T; ++n) {
    batch.documents.push_back(n % batch.T / 200);
    batch.positions[static_cast<std::size_t>(n)] = n % batch.T % 200;
  }
}

/// Most bytes that some steps took beyond what was there before. With `captured`, the last of them are
/// replayed.
std::int64_t measured_peak(const spec::memory::Setting& setting, bool captured = false) {
  const auto communicator = make_self_communicator();
  const std::int64_t sequences = setting.micro * setting.micro_batches;
  auto batch = tests::tiny_batch(setting.model, sequences, setting.sequence_length, tests::Documents::whole,
                                 tests::Ignored::none, 4);
  if (setting.documents) tell_apart(batch);
  const at::Tensor first = at::zeros({1}, at::TensorOptions(at::kCUDA));  // the allocator begins with it
  const std::int64_t before = allocated_bytes(false);
  c10::cuda::CUDACachingAllocator::resetPeakStats(0);
  tests::StepRunner trainer(setting.model, setting.dtype, at::kCUDA, *communicator, step_settings(), 1,
                            setting.recompute);
  if (captured) trainer.executor().capture_with(run::make_cuda_graphs(at::Device(at::kCUDA, 0)));
  for (int step = 0; step < (captured ? 4 : 2); ++step)
    trainer.step(tests::micro_batches(batch, setting.micro), static_cast<double>(batch.valid_tokens()), 1e-3);
  if (setting.validation_batch > 0)
    trainer.model().token_losses(
        tests::token_batch(tests::tiny_batch(setting.model, setting.validation_batch, setting.sequence_length,
                                             tests::Documents::whole, tests::Ignored::none, 5),
                           at::kCUDA));
  return allocated_bytes(true) - before;
}

TEST(MemoryPlanCuda, StepsTakeWhatThePlanSaysWithin2Percent) {
  ASSAY_NEEDS_GPU();
  for (const bool grouped : {false, true})
    for (const Recompute recompute : spec::all_recomputes) {
      const auto asked = setting(grouped, recompute);
      const auto plan = spec::memory::plan(asked);
      const auto measured = static_cast<double>(measured_peak(asked)), planned = plan.peak.to_double();
      std::cout << (grouped ? "grouped " : "full ") << to_string(recompute) << ": planned " << planned / 1e6
                << " MB at " << plan.moment << ", measured " << measured / 1e6 << " MB, "
                << 100 * (measured / planned - 1) << " % off" << std::endl;
      EXPECT_NEAR(measured, planned, 0.02 * planned) << to_string(recompute) << " at " << plan.moment;
    }
}

TEST(MemoryPlanCuda, StepsOfDocumentsTakeWhatThePlanSaysWithin2Percent) {
  ASSAY_NEEDS_GPU();
  for (const bool grouped : {false, true})
    for (const bool captured : {false, true}) {
      auto asked = setting(grouped, Recompute::norms_swiglu);
      asked.documents = true;
      const auto plan = spec::memory::plan(asked);
      const auto measured = static_cast<double>(measured_peak(asked, captured)),
                 planned = plan.peak.to_double();
      std::cout << "heads " << (grouped ? "grouped" : "full") << " with documents"
                << (captured ? ", captured" : "") << ": planned " << planned / 1e6 << " MB at " << plan.moment
                << ", measured " << measured / 1e6 << " MB" << std::endl;
      EXPECT_NEAR(measured, planned, 0.02 * planned) << plan.moment;
    }
}

TEST(MemoryPlanCuda, RecordedStepsTakeWhatThePlanSaysWithin2Percent) {
  ASSAY_NEEDS_GPU();
  const auto asked = setting(false, Recompute::norms_swiglu);
  const auto measured = static_cast<double>(measured_peak(asked, /*captured=*/true)),
             planned = spec::memory::plan(asked).peak.to_double();
  std::cout << "heads captured: planned " << planned / 1e6 << " MB, measured " << measured / 1e6 << " MB"
            << std::endl;
  EXPECT_NEAR(measured, planned, 0.02 * planned);
}

TEST(MemoryPlanCuda, AValidationTakesWhatThePlanSaysWithin2Percent) {
  ASSAY_NEEDS_GPU();
  for (const bool captured : {false, true}) {
    auto asked = setting(true, Recompute::block);
    asked.micro = 2, asked.validation_batch = 32, asked.captured = captured;
    const auto plan = spec::memory::plan(asked);
    // What captured steps took stays theirs, but the allocator counts it as free between them.
    double planned = plan.peak.to_double();
    for (const auto& item : plan.items)
      if (item.name == "captured_steps") planned -= item.bytes.to_double();
    const auto measured = static_cast<double>(measured_peak(asked, captured));
    std::cout << "validation" << (captured ? ", captured" : "") << ": planned " << planned / 1e6 << " MB at "
              << plan.moment << ", measured " << measured / 1e6 << " MB" << std::endl;
    EXPECT_EQ(plan.moment.substr(0, 12), "validation, ");
    EXPECT_NEAR(measured, planned, 0.02 * planned);
  }
}

/// Restores what was set before.
class Deterministic {
 public:
  Deterministic() { set_deterministic(true); }
  ~Deterministic() { set_deterministic(before_); }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  const bool before_ = deterministic();
};

TEST(MemoryPlanCuda, StepsInAFixedOrderTakeWhatThePlanSaysWithin2Percent) {
  ASSAY_NEEDS_GPU();
  const Deterministic on;
  for (const bool grouped : {false, true}) {
    auto asked = setting(grouped, Recompute::norms_swiglu);
    asked.model.context *= 2, asked.sequence_length *= 2,
        asked.micro /= 2;  // a gradient of scores that is 4 % of the plan
    asked.fixed_order = true;
    const auto plan = spec::memory::plan(asked);
    const auto measured = static_cast<double>(measured_peak(asked)), planned = plan.peak.to_double();
    std::cout << "heads " << (grouped ? "grouped" : "full") << " in a fixed order: planned " << planned / 1e6
              << " MB at " << plan.moment << ", measured " << measured / 1e6 << " MB" << std::endl;
    EXPECT_NEAR(measured, planned, 0.02 * planned) << plan.moment;
  }
}

/// Tensors of a step come from what the caching allocator holds since the first ones.
TEST(MemoryPlanCuda, AfterTheFirstStepsNothingIsAllocatedFromTheDevice) {
  ASSAY_NEEDS_GPU();
  for (const bool captured : {false, true})
    for (const bool grouped : {false, true}) {
      const auto asked = setting(grouped, Recompute::norms_swiglu);
      const auto communicator = make_self_communicator();
      c10::cuda::CUDACachingAllocator::emptyCache();
      tests::StepRunner trainer(asked.model, asked.dtype, at::kCUDA, *communicator, step_settings(), 1,
                                asked.recompute);
      if (captured) trainer.executor().capture_with(run::make_cuda_graphs(at::Device(at::kCUDA, 0)));
      const auto step = [&](std::uint64_t number) {
        const auto batch =
            tests::tiny_batch(asked.model, asked.micro * asked.micro_batches, asked.sequence_length,
                              tests::Documents::whole, tests::Ignored::none, number);
        trainer.step(tests::micro_batches(batch, asked.micro), static_cast<double>(batch.valid_tokens()),
                     1e-3);
      };
      // Captured, in memory of its own, is the third step or, where algorithms are not on disk, the one after
      // their search.
      constexpr std::uint64_t most = 1000;
      std::uint64_t first = 0;
      const auto searches = [&] {
        const auto before = cuda::searching_calls();
        step(first++);
        return cuda::searching_calls() != before;
      };
      for (bool searched = true; first < 2 || (captured && searched && first < most);) searched = searches();
      ASSERT_LT(first, most) << "the search of algorithms has not ended";
      if (captured) step(first++);
      const auto before = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
      for (std::uint64_t number = first; number < first + 4; ++number) step(number);
      const auto after = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
      const std::string where = std::string(captured ? "captured" : "eager") + (grouped ? " grouped" : "");
      EXPECT_EQ(after.num_device_alloc, before.num_device_alloc) << where;
      EXPECT_EQ(after.num_device_free, before.num_device_free) << where;
      EXPECT_EQ(after.num_alloc_retries, before.num_alloc_retries) << where;
      EXPECT_EQ(after.segment[0].current, before.segment[0].current) << where;
      EXPECT_EQ(after.reserved_bytes[0].current, before.reserved_bytes[0].current) << where;
      std::cout << "heads " << where << ": " << before.num_device_alloc << " allocations from the device, "
                << before.reserved_bytes[0].current / 1e6 << " MB held" << std::endl;
    }
}

/// From the first step on, as the arena is there before it.
TEST(MemoryPlanCuda, TheArenaOfThePlannedSizeHoldsEveryStep) {
  ASSAY_NEEDS_GPU();
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE),
                 large = static_cast<std::size_t>(c10::CachingAllocator::StatType::LARGE_POOL);
  for (const bool grouped : {false, true})
    for (const Recompute recompute : spec::all_recomputes) {
      const auto asked = setting(grouped, recompute);
      const auto communicator = make_self_communicator();
      const at::Tensor first = at::zeros({1}, at::TensorOptions(at::kCUDA));
      c10::cuda::CUDACachingAllocator::emptyCache();
      const std::int64_t before_all = allocated_bytes(false);
      tests::StepRunner trainer(asked.model, asked.dtype, at::kCUDA, *communicator, step_settings(), 1,
                                recompute);
      const std::int64_t planned = spec::memory::plan(asked).peak.to_int64() + before_all;
      reserve_step_arena(at::Device(at::kCUDA, 0), planned - allocated_bytes(false));
      const auto before = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
      EXPECT_GE(before.reserved_bytes[all].current, planned);
      for (std::uint64_t number = 0; number < 4; ++number)
        trainer.step(tests::micro_batches(tests::tiny_batch(asked.model, asked.micro * asked.micro_batches,
                                                            asked.sequence_length, tests::Documents::whole,
                                                            tests::Ignored::none, number),
                                          asked.micro),
                     static_cast<double>(asked.micro * asked.micro_batches * asked.sequence_length), 1e-3);
      const auto after = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
      std::cout << (grouped ? "grouped " : "full ") << to_string(recompute) << ": planned "
                << static_cast<double>(planned) / 1e6 << " MB, held "
                << static_cast<double>(before.reserved_bytes[all].current) / 1e6 << " MB before the steps, "
                << static_cast<double>(after.reserved_bytes[all].current) / 1e6 << " MB after, "
                << after.num_device_alloc - before.num_device_alloc << " allocations from the device"
                << std::endl;
      EXPECT_EQ(after.segment[large].current, before.segment[large].current) << to_string(recompute);
    }
}

TEST(MemoryPlanCuda, AnArenaThatTheGpuDoesNotHaveIsRefusedWithTheWayOut) {
  ASSAY_NEEDS_GPU();
  try {
    reserve_step_arena(at::Device(at::kCUDA, 0), std::int64_t{1} << 50);
    FAIL() << "reserved";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const char* word : {"1.00 PiB", "are free", "nvidia-smi", "memory.recompute=block"})
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(RecomputeCuda, EverySettingGivesTheSameBits) {
  ASSAY_NEEDS_GPU();
  const spec::ModelSpec model = tests::tiny_model(3);
  const auto communicator = make_self_communicator();
  for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
    at::Tensor first;
    for (const Recompute recompute : spec::all_recomputes) {
      tests::StepRunner trainer(model, dtype, at::kCUDA, *communicator, step_settings(), 3, recompute);
      const auto batch = tests::tiny_batch(model, 4, 7, tests::Documents::packed, tests::Ignored::some, 1);
      for (int step = 0; step < 3; ++step)
        trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()), 3e-3);
      if (!first.defined()) first = trainer.buffers().master.clone();
      EXPECT_TRUE(at::equal(trainer.buffers().master, first)) << to_string(recompute);
    }
  }
}

}  // namespace
}  // namespace assay::impl::cuda_memory_plan_test
