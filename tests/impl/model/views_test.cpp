// labels: unit property
#include "impl/model/views.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/paths.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl {
namespace {

/// Every element of a block is written by a GEMM or listed as beside GEMMs, none by both: what a step
/// zeroes and what its first GEMMs overwrite are together all of the gradient.
RC_GTEST_PROP(ViewsImpl, GemmsAndWhatIsBesideThemCoverEveryBlockOnce, ()) {
  spec::ModelSpec model = tests::tiny_model(*rc::gen::arbitrary<std::uint32_t>());
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  model.qk_norm = *rc::gen::arbitrary<bool>();
  model.qk_norm_across_heads = model.qk_norm && *rc::gen::arbitrary<bool>();
  const spec::Inventory inventory = spec::inventory(model, *rc::gen::element(1, 8, 64));
  const at::Tensor times = at::zeros({inventory.flat_size}, at::kInt);
  for (std::int64_t block = 0; block < inventory.blocks; ++block) {
    const auto [begin, end] = inventory.block_range(block);
    for (const at::Tensor& part : beside_gemms(times, begin, end, inventory, block, model.tied_embeddings))
      part.add_(1);
    const BlockViews into = views(times, inventory, model, block);
    for (const at::Tensor& matrix :
         {into.decoder.qkv, into.decoder.output, into.decoder.gate_up, into.decoder.down, into.head})
      if (matrix.defined()) matrix.add_(1);
  }
  RC_ASSERT(at::equal(times, at::ones_like(times)));
}

TEST(ViewsImpl, GainsAndAnEmbeddingOfItsOwnAreBesideGemms) {
  spec::ModelSpec model = tests::tiny_model(3);
  model.tied_embeddings = false;
  const spec::Inventory inventory = spec::inventory(model);
  const at::Tensor flat = at::zeros({inventory.flat_size});
  for (std::int64_t block = 0; block < inventory.blocks; ++block) {
    const auto [begin, end] = inventory.block_range(block);
    for (const at::Tensor& part : beside_gemms(flat, begin, end, inventory, block, false)) part.fill_(1);
  }
  for (const spec::Parameter& parameter : inventory.parameters) {
    const bool beside = !parameter.matrix() || parameter.role == spec::Role::embedding;
    EXPECT_TRUE(at::equal(view(flat, parameter), at::full(parameter.shape, beside ? 1.0F : 0.0F)))
        << parameter.name;
  }
}

}  // namespace
}  // namespace assay::impl
