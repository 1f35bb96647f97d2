// labels: gpu property
// What whole training steps ran on the GPU, by the reports of our own calls into vendor libraries and by
// ATen's dispatch, against the spec's count: exactly equal, component by component.
#include "spec/flops/executed.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/attention/attention.hpp"
#include "spec/memory/head.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::metrics::cuda_executed_flops_test {
namespace {

using spec::AttentionKernel;
using spec::ExecutedFlops;
using spec::ExecutedPass;
using spec::FlopComponent;

constexpr ExecutedPass all_passes[] = {ExecutedPass::forward, ExecutedPass::backward,
                                       ExecutedPass::recompute};

struct Drawn {
  spec::ModelSpec model;
  Dtype dtype = Dtype::f64;
  spec::AttentionBackend backend = spec::AttentionBackend::automatic;
  reference::Batch batch;
  std::int64_t micro = 1;
};

/// Plain products in every dtype, and a fused kernel where one takes bf16: heads of a multiple of 8 entries.
Drawn draw() {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  Drawn out;
  out.model = tests::tiny_model(seed);
  out.model.context = 64;
  const bool fused = *rc::gen::arbitrary<bool>();
  out.model.head_dim =
      fused ? 8 * *rc::gen::inRange<std::int64_t>(1, 9) : 2 * *rc::gen::inRange<std::int64_t>(1, 11);
  out.dtype = fused ? Dtype::bf16 : *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  out.backend = fused ? spec::AttentionBackend::flash : spec::AttentionBackend::math;
  const auto B = *rc::gen::inRange<std::int64_t>(1, 4), T = *rc::gen::inRange<std::int64_t>(2, 41);
  const auto documents = *rc::gen::element(tests::Documents::whole, tests::Documents::packed);
  out.batch = tests::tiny_batch(out.model, B, T, documents, tests::Ignored::some, seed);
  out.micro = *rc::gen::inRange<std::int64_t>(1, B + 1);
  return out;
}

/// Tokens of each document of one sequence.
std::vector<std::int64_t> lengths_of(const reference::Batch& batch, std::int64_t sequence) {
  if (batch.documents.empty()) return {batch.T};
  std::vector<std::int64_t> lengths = {1};
  for (std::int64_t n = sequence * batch.T + 1; n < (sequence + 1) * batch.T; ++n) {
    const auto at = static_cast<std::size_t>(n);
    if (batch.documents[at] == batch.documents[at - 1])
      ++lengths.back();
    else
      lengths.push_back(1);
  }
  return lengths;
}

ExecutedFlops stated(const Drawn& drawn) {
  const bool fused = drawn.backend != spec::AttentionBackend::math;
  const AttentionKernel kernel{.kind = fused ? AttentionKernel::Kind::fused : AttentionKernel::Kind::square};
  ExecutedFlops sum;
  for (std::int64_t b = 0; b < drawn.batch.B; ++b)
    sum += spec::executed_flops(drawn.model, lengths_of(drawn.batch, b), kernel);
  // The head's products run over the vocabulary that is padded for the GPU.
  const std::int64_t V = drawn.model.vocab,
                     padded = spec::memory::padded_vocabulary(V, element_bytes(drawn.dtype));
  for (auto& count : sum.counts[static_cast<std::size_t>(FlopComponent::head)])
    count.padding = (count.needed * (padded - V)).divided_exactly_by(V);
  return sum;
}

std::string difference(const MeasuredFlops& ran, const ExecutedFlops& expected) {
  std::string text;
  for (std::size_t i = 0; i < spec::flop_components; ++i)
    for (const ExecutedPass pass : all_passes) {
      const auto component = static_cast<FlopComponent>(i);
      if (ran.at(component, pass) != expected.at(component, pass).executed())
        text += std::string(to_string(component)) + " " + std::string(to_string(pass)) + ": ran " +
                ran.at(component, pass).to_string() + ", spec says " +
                expected.at(component, pass).executed().to_string() + "\n";
    }
  if (ran.elsewhere != Count(0)) text += "of no component: " + ran.elsewhere.to_string() + "\n";
  return text;
}

MeasuredFlops step(const Drawn& drawn) {
  const auto communicator = make_self_communicator();
  const run::StepSettings settings{
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 1, .z_loss = 1e-4};
  tests::StepRunner trainer(drawn.model, drawn.dtype, at::Device(at::kCUDA, 0), *communicator, settings, 1);
  trainer.model().attend_by(drawn.backend);
  const FlopCounter counter;
  trainer.step(tests::micro_batches(drawn.batch, drawn.micro),
               static_cast<double>(drawn.batch.valid_tokens()), 1e-3);
  return counter.measured();
}

TEST(ExecutedFlopsCuda, StepsOfDrawnTinyModelsRunExactlyWhatTheSpecSays) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] {
    const Drawn drawn = draw();
    const std::string differ = difference(step(drawn), stated(drawn));
    if (!differ.empty())
      RC_FAIL(tests::describe(drawn.model) + " " + tests::describe(drawn.batch) + "\n" + differ);
  }));
}

TEST(ExecutedFlopsCuda, CudnnsAttentionIsCountedAndASpecWithoutOneProductIsSeen) {
  ASSAY_NEEDS_GPU();
  Drawn drawn{.model = tests::corner_models().front(), .batch = {}};
  drawn.model.context = 128, drawn.model.head_dim = 64;
  drawn.dtype = Dtype::bf16, drawn.backend = spec::AttentionBackend::cudnn;
  drawn.batch = tests::tiny_batch(drawn.model, 2, 128, tests::Documents::whole, tests::Ignored::none, 4);
  const MeasuredFlops ran = step(drawn);
  ExecutedFlops expected = stated(drawn);
  EXPECT_EQ(difference(ran, expected), "");
  Count& needed = expected.counts[static_cast<std::size_t>(FlopComponent::down)][0].needed;
  needed = needed - needed.divided_exactly_by(drawn.model.layers);
  EXPECT_NE(difference(ran, expected), "");
}

}  // namespace
}  // namespace assay::impl::metrics::cuda_executed_flops_test
