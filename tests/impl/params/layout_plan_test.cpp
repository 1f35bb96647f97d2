// labels: unit property
// What the ranks of a layout hold for the whole run, counted where ATen's tensors get their memory, against
// the plan.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/params/layouts/make_parameters.hpp"
#include "spec/plan/plan.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/counting_allocator.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::layout_plan_test {
namespace {

using spec::DataParallel;
namespace memory = spec::memory;

/// Bytes that all ranks of `setting.layout` hold together.
std::int64_t held_by_all(const memory::Setting& setting) {
  std::atomic<std::int64_t> held = 0;
  tests::CountingAllocator::installed().begin();
  tests::on_thread_ranks(static_cast<int>(setting.layout.ranks), [&](Communicator& communicator) {
    LayoutGroups groups(communicator, setting.layout);
    const ParameterBuffers buffers = allocate(setting.model, setting.dtype, at::kCPU, setting.states,
                                              {.layout = setting.layout, .rank = communicator.rank()});
    const auto wire = setting.rounded_sums ? at::kBFloat16 : buffers.gradients.scalar_type();
    const auto parameters = make_parameters(buffers, setting.model, groups, wire, setting.linear);
    communicator.barrier();
    if (communicator.rank() == 0) held = tests::CountingAllocator::installed().held();
    communicator.barrier();
  });
  return held;
}

RC_GTEST_PROP(LayoutPlanImpl, TheStateOfEachLayoutIsWhatThePlanSays, ()) {
  memory::Setting setting;
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  setting.model = *rc::gen::arbitrary<bool>() ? tests::latent_model(seed) : tests::tiny_model(seed);
  setting.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  setting.states = *rc::gen::element(Dtype::f32, Dtype::bf16);
  const auto ranks = *rc::gen::inRange<std::int64_t>(1, 7);
  const auto data = *rc::gen::element(DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                      DataParallel::hybrid);
  setting.layout =
      spec::layout_of(data, ranks, data == DataParallel::hybrid && ranks % 2 == 0 ? ranks / 2 : ranks);
  setting.sequence_length = 1;
  setting.linear.recipe = *rc::gen::element(spec::quantise::Recipe::none, spec::quantise::Recipe::fp8_tensor,
                                            spec::quantise::Recipe::fp8_block);
  if (*rc::gen::arbitrary<bool>()) setting.linear.unquantised = {1};
  // Gathered in the compute type, whether they are quantised or not.
  setting.linear.experts = setting.model.experts && *rc::gen::arbitrary<bool>() &&
                           setting.linear.recipe == spec::quantise::Recipe::fp8_tensor;
  setting.rounded_sums = setting.dtype == Dtype::bf16 && *rc::gen::arbitrary<bool>();
  std::int64_t predicted = 0;
  for (const memory::Item& item : memory::plan(setting).items)
    if (item.purpose == memory::Purpose::state && !item.name.starts_with("rope"))
      predicted += item.bytes.to_int64();
  RC_ASSERT(held_by_all(setting) == ranks * predicted);
}

TEST(LayoutPlanImpl, ShardsTakeLessOfALargeModel) {
  memory::Setting setting;
  setting.model = spec::find_model("llama3-8b");
  setting.dtype = Dtype::bf16;
  const auto state = [&](DataParallel data) {
    setting.layout = spec::layout_of(data, 4, 4);
    return memory::plan(setting).state.to_double() / 1e9;
  };
  const double whole = 8.030261248;  // billions of parameters; 18 bytes of each
  EXPECT_NEAR(state(DataParallel::replicate), 18 * whole, 0.01);
  EXPECT_NEAR(state(DataParallel::zero1), (2 + 4 + 12.0 / 4) * whole, 0.01);
  const double block = 0.218112, embedding = 0.525336576;  // of 32 blocks; of embedding or head with its norm
  EXPECT_NEAR(state(DataParallel::shard), 18.0 / 4 * whole + 6 * (2 * block + embedding), 0.01);
}

}  // namespace
}  // namespace assay::impl::layout_plan_test
