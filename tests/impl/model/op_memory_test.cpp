// labels: unit property
#include "tests/impl/model/op_memory.hpp"

#include <c10/core/InferenceMode.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/params/counting_allocator.hpp"
#include "tests/impl/step/fp8_step_parity.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::op_memory_test {
namespace {

/// What no op of the paper takes: losses and loads of each sparse layer, which are held until the
/// micro-batch's forward is done, losses of the head's chunks, and what ATen makes of a number.
std::int64_t beside_ops(const spec::ModelSpec& model) {
  return 64 + (model.experts ? 8 * model.sparse_layers() * (4 + 2 * model.experts->count) : 0);
}

RC_GTEST_PROP(OpMemoryImpl, EveryOpFindsAndTakesWhatThePaperSays, ()) {
  const c10::InferenceMode no_autograd;
  auto& allocator = tests::CountingAllocator::installed();
  const tests::Meter meter{.held = [&] { return allocator.held(); },
                           .most = [&] { return allocator.most(); },
                           .restart = [&] { allocator.restart(); }};
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  const spec::memory::Setting setting{
      .model = seed % 3 == 0   ? tests::latent_model(seed)
               : seed % 2 == 1 ? tests::routed_model(seed)
                               : tests::tiny_model(seed),
      .dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16),
      .recompute = *rc::gen::elementOf(spec::all_recomputes),
      .micro = *rc::gen::inRange<std::int64_t>(1, 4),
      .sequence_length = *rc::gen::inRange<std::int64_t>(1, 20),
      .auxiliary = {.probabilities = *rc::gen::arbitrary<bool>(),
                    .logits = *rc::gen::arbitrary<bool>(),
                    .of_batch = seed % 2 == 1 && *rc::gen::arbitrary<bool>()},
      .capacity = *rc::gen::element(0.0, 1.0, 1.5),
      .sources = *rc::gen::inRange<std::int64_t>(0, 2),
      .chunk_logits = *rc::gen::element<std::int64_t>(40, 200, spec::memory::most_logits)};
  tests::compare_op_memory(setting, at::kCPU, meter, beside_ops(setting.model));
}

/// 128 divides every extent: all recipes fit.
TEST(OpMemoryImpl, Fp8OpsTakeWhatThePaperSays) {
  const c10::InferenceMode no_autograd;
  auto& allocator = tests::CountingAllocator::installed();
  const tests::Meter meter{.held = [&] { return allocator.held(); },
                           .most = [&] { return allocator.most(); },
                           .restart = [&] { allocator.restart(); }};
  using spec::quantise::Recipe;
  spec::memory::Setting setting;
  setting.micro = 2, setting.sequence_length = 64;
  int number = 0;
  for (const auto& [recipe, model] : {std::pair{Recipe::fp8_tensor, parity::fp8_model(true)},
                                      {Recipe::mxfp8, parity::fp8_model(true)},
                                      {Recipe::fp8_tensor, parity::fp8_latent_model(true)},
                                      {Recipe::fp8_block, parity::fp8_latent_model(false)},
                                      {Recipe::fp8_block, parity::fp8_experts_model(true)},
                                      {Recipe::fp8_tensor, parity::fp8_experts_model(false)},
                                      {Recipe::fp8_tensor, parity::fp8_whole_experts_model(false)},
                                      {Recipe::mxfp8, parity::fp8_latent_model(false)}})
    for (const spec::Recompute recompute : spec::all_recomputes)
      for (const auto& [weights, layout] :
           {std::pair{spec::QuantiseWeights::step, spec::Layout{}},
            {spec::QuantiseWeights::use, spec::Layout{}},
            {spec::QuantiseWeights::use, spec::layout_of(spec::DataParallel::shard, 2)}}) {
        constexpr Dtype dtypes[] = {Dtype::bf16, Dtype::f32, Dtype::f64};
        setting.model = model, setting.model.layers = 2;
        setting.dtype = dtypes[number++ % 3];
        setting.recompute = recompute;
        setting.linear = {.recipe = recipe, .unquantised = {}, .weights = weights};
        setting.linear.experts = model.experts && model.experts->width % 16 == 0;
        if (number % 4 == 0) setting.linear.unquantised = {1};
        setting.layout = layout;
        SCOPED_TRACE(model.name + ", " + std::string(to_string(recipe)) + ", " +
                     std::string(to_string(recompute)));
        tests::compare_op_memory(setting, at::kCPU, meter, beside_ops(setting.model));
      }
}

}  // namespace
}  // namespace assay::impl::op_memory_test
