// labels: unit property
#include "reference/model/block.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/support/compare.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::block_test {
namespace {

using tests::Allowed;
using tests::Documents;
using tests::Ignored;
using tests::values;

/// A block of a model with its input, upstream and parameters, all drawn.
struct Case {
  explicit Case(const spec::ModelSpec& drawn, Documents documents = Documents::packed)
      : model(drawn),
        batch(tests::tiny_batch(model, 2, 4, documents, Ignored::none, 1)),
        parameters(tests::drawn_parameters(model, 2)),
        x(tests::normal({batch.B, batch.T, model.width}, 3)),
        dy(tests::normal(x.shape(), 4)) {}

  spec::ModelSpec model;
  Batch batch;
  Parameters<double> parameters;
  Tensor<double> x, dy;
  Index layer = 0;

  block::Forward<double> forward() const { return block::forward(x, parameters, layer, model, batch); }
};

TEST(BlockReference, WithoutItsTwoOutputMatricesItPassesItsInputOn) {
  Case c(tests::corner_models().front());
  c.parameters.at("model.layers.0.self_attn.o_proj.weight").flat() = 0;
  c.parameters.at("model.layers.0.mlp.down_proj.weight").flat() = 0;
  ASSAY_EXPECT_CLOSE(values(c.forward().y), values(c.x), Allowed::exact());
  Parameters<double> gradients;
  ASSAY_EXPECT_CLOSE(values(block::backward(c.dy, c.forward(), c.parameters, 0, c.model, c.batch, gradients)),
                     values(c.dy), Allowed::exact());
}

TEST(BlockReference, BackwardMatchesCentralDifferenceForInputAndEveryParameter) {
  auto models = tests::corner_models();
  for (auto& model : tests::latent_models()) models.push_back(std::move(model));
  for (const auto& model : models) {
    SCOPED_TRACE(tests::describe(model));
    Case c(model);
    Parameters<double> gradients;
    const auto dx = block::backward(c.dy, c.forward(), c.parameters, 0, model, c.batch, gradients);
    const auto loss = [&] { return tests::dot(c.dy, c.forward().y); };
    const auto by_difference = [&](Tensor<double>& moved) {
      return tests::central_difference(
          [&](const Tensor<double>& at) {
            moved = at;
            return loss();
          },
          Tensor<double>(moved));
    };
    const auto original = c.x;
    const auto expected = by_difference(c.x);
    c.x = original;
    ASSAY_EXPECT_CLOSE(values(dx), expected, Allowed::relative(1e-7));
    const auto listed = spec::inventory(model).parameters;
    EXPECT_EQ(gradients.size(),
              static_cast<std::size_t>(
                  std::count_if(listed.begin(), listed.end(), [](const auto& p) { return p.block == 1; })));
    for (const auto& [name, gradient] : gradients) {
      SCOPED_TRACE(name);
      const auto weight = c.parameters.at(name);
      const auto expected_weight = by_difference(c.parameters.at(name));
      c.parameters.at(name) = weight;
      ASSAY_EXPECT_CLOSE(values(gradient), expected_weight, Allowed::relative(1e-7));
    }
  }
}

RC_GTEST_PROP(BlockReference, ATokenChangesNoEarlierOneAndNoOtherSequence, (std::uint64_t seed)) {
  Case c(tests::tiny_model(seed), Documents::whole);
  const auto before = c.forward().y;
  const Index t = *rc::gen::inRange<Index>(0, c.batch.T);
  for (Index d = 0; d < c.model.width; ++d) c.x(1, t, d) += 1;
  const auto after = c.forward().y;
  for (Index n = 0; n < before.size(); ++n) {
    const Index b = n / (c.batch.T * c.model.width), s = n / c.model.width % c.batch.T;
    if (b == 0 || s < t) RC_ASSERT(after[n] == before[n]);
  }
}

}  // namespace
}  // namespace assay::reference::block_test
