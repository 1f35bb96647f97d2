// labels: gpu
#include "tests/impl/model/op_memory.hpp"

#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_op_memory_test {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Large enough that the allocator's rounding to 512 bytes and a library's small buffers do not count.
spec::memory::Setting setting(bool grouped, spec::Recompute recompute) {
  spec::memory::Setting out;
  spec::ModelSpec& model = out.model;
  model.name = "medium", model.family = grouped ? spec::Family::qwen3 : spec::Family::qwen2;
  model.vocab = grouped ? 50257 : 32000;  // the first is padded for the head's GEMMs
  model.width = 1024, model.layers = 2, model.heads = 8, model.kv_heads = grouped ? 2 : 8;
  model.head_dim = 128, model.ffn = 2816, model.context = 1024, model.qk_norm = grouped,
  model.qkv_bias = !grouped;
  out.dtype = Dtype::bf16, out.machine = spec::memory::Machine::cuda, out.recompute = recompute;
  out.micro = 8, out.sequence_length = 1024;
  out.chunk_logits = std::int64_t{1} << 26;  // several chunks
  return out;
}

TEST(OpMemoryCuda, EveryOpFindsAndTakesWhatThePaperSays) {
  ASSAY_NEEDS_GPU();
  const c10::InferenceMode no_autograd;
  const auto bytes = [](bool peak) {
    const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stat = allocator::getDeviceStats(0).allocated_bytes[all];
    return peak ? stat.peak : stat.current;
  };
  const tests::Meter meter{.held = [&] { return bytes(false); },
                           .most = [&] { return bytes(true); },
                           .restart = [] { allocator::resetPeakStats(0); }};
  for (const bool grouped : {false, true})
    for (const spec::Recompute recompute : spec::all_recomputes) {
      SCOPED_TRACE(std::string(to_string(recompute)) + (grouped ? ", grouped" : ""));
      tests::compare_op_memory(setting(grouped, recompute), at::Device(at::kCUDA, 0), meter, 4 << 20,
                               /*prepare=*/true);
    }
  {
    SCOPED_TRACE("normed across heads");
    auto across = setting(true, spec::Recompute::norms_swiglu);
    across.model.qk_norm_across_heads = true;
    tests::compare_op_memory(across, at::Device(at::kCUDA, 0), meter, 4 << 20, /*prepare=*/true);
  }
  using spec::quantise::Recipe;
  for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block})
    for (const spec::Recompute recompute : spec::all_recomputes)
      for (const auto& [weights, layout] :
           {std::pair{spec::QuantiseWeights::step, spec::Layout{}},
            {spec::QuantiseWeights::use, spec::Layout{}},
            {spec::QuantiseWeights::use, spec::layout_of(spec::DataParallel::shard, 2)}}) {
        SCOPED_TRACE(std::string(to_string(recompute)) + ", " + to_string(recipe) + ", " +
                     std::string(spec::to_string(layout.data)));
        auto fp8 = setting(true, recompute);
        fp8.linear = {.recipe = recipe, .unquantised = {}, .weights = weights};
        fp8.layout = layout;
        tests::compare_op_memory(fp8, at::Device(at::kCUDA, 0), meter, 4 << 20, /*prepare=*/true);
        if (recipe != Recipe::fp8_tensor) continue;
        SCOPED_TRACE("routed experts");
        fp8.model.experts = spec::Experts{.count = 8, .active = 2, .width = 1024, .first_dense = 1};
        fp8.linear.experts = true;
        tests::compare_op_memory(fp8, at::Device(at::kCUDA, 0), meter, 4 << 20, /*prepare=*/true);
      }
}

}  // namespace
}  // namespace assay::impl::cuda_op_memory_test
