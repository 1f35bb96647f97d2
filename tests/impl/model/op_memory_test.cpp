// labels: unit property
#include "tests/impl/model/op_memory.hpp"

#include <c10/core/InferenceMode.h>
#include <rapidcheck/gtest.h>

#include "tests/impl/params/counting_allocator.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::op_memory_test {
namespace {

RC_GTEST_PROP(OpMemoryImpl, EveryOpFindsAndTakesWhatThePaperSays, ()) {
  const c10::InferenceMode no_autograd;
  auto& allocator = tests::CountingAllocator::installed();
  const tests::Meter meter{.held = [&] { return allocator.held(); },
                           .most = [&] { return allocator.most(); },
                           .restart = [&] { allocator.restart(); }};
  const spec::memory::Setting setting{
      .model = tests::tiny_model(*rc::gen::inRange<std::uint64_t>(0, 1u << 30)),
      .dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16),
      .recompute = *rc::gen::elementOf(spec::all_recomputes),
      .micro = *rc::gen::inRange<std::int64_t>(1, 4),
      .sequence_length = *rc::gen::inRange<std::int64_t>(1, 20),
      .chunk_logits = *rc::gen::element<std::int64_t>(40, 200, spec::memory::most_logits)};
  // Scalars: the losses of the head's chunks, and what ATen makes of a number.
  tests::compare_op_memory(setting, at::kCPU, meter, 64);
}

}  // namespace
}  // namespace assay::impl::op_memory_test
