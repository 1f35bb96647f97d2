#pragma once
// What a trainer takes from DeviceStaging is what the loader read, on any device.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "impl/data/grammar_data.hpp"
#include "impl/step/device_staging.hpp"

namespace assay::impl::run::staging_checks {

template <class Value>
std::vector<Value> on_host(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor copy = tensor.cpu().contiguous();
  return {copy.const_data_ptr<Value>(), copy.const_data_ptr<Value>() + copy.numel()};
}

inline void expect_same(const TokenBatch& got, const data::MicroBatch& read) {
  ASSERT_EQ(got.B, read.B);
  ASSERT_EQ(got.T, read.T);
  EXPECT_EQ(on_host<std::int64_t>(got.inputs), read.inputs);
  EXPECT_EQ(on_host<std::int64_t>(got.targets), read.targets);
  EXPECT_EQ(on_host<std::int32_t>(got.positions), read.positions);
  EXPECT_EQ(on_host<std::int32_t>(got.documents.numbers), read.documents);
  EXPECT_EQ(on_host<std::int32_t>(got.documents.offsets), read.document_offsets);
  EXPECT_EQ(got.documents.on_host, read.document_offsets);
  if (!got.documents.defined()) return;
  EXPECT_EQ(got.documents.numbers.sizes(), (at::IntArrayRef{read.B, read.T}));
}

/// Takes `steps` steps; before each one's batches are looked at, `work` is given to the device.
template <class Work>
void take_steps(at::Device device, std::int64_t prefetch, std::optional<std::int64_t> end_of_document,
                std::int64_t steps, const Work& work) {
  constexpr std::int64_t T = 33;  // odd: lists of a micro-batch begin at odd places
  const auto source = std::make_shared<data::GrammarData>(3, T, 500);
  DeviceStaging staging(device, prefetch);
  data::LoaderPlan plan;
  plan.seed = 7;
  plan.sequences = 9;
  plan.split = {.micro = 3, .ranks = 1};
  plan.start_step = 5;
  plan.prefetch = prefetch;
  plan.end_of_document = end_of_document;
  data::Loader loader(source, plan, [&](const data::StepBatches& batches) { staging.stage(batches); });
  for (std::int64_t step = 0; step < steps; ++step) {
    const data::StepBatches batches = loader.next();
    const std::vector<TokenBatch> got = staging.take(batches);
    ASSERT_EQ(got.size(), 3u);
    work();
    for (std::size_t m = 0; m < got.size(); ++m) expect_same(got[m], batches.micro_batches[m]);
  }
}

}  // namespace assay::impl::run::staging_checks
