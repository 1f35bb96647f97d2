// labels: golden
// golden/weights: the files of Hugging Face transformers, read by our table of names, give its logits.
#include <gtest/gtest.h>

#include "reference/model/model.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/weight_folders.hpp"

namespace assay::reference::weights_golden_test {
namespace {

using tests::Allowed;
using tests::values;

class WeightsGolden : public testing::TestWithParam<std::string> {};

TEST_P(WeightsGolden, LogitsAreThoseOfTransformers) {
  const tests::WeightFolderInMemory folder(GetParam());
  const auto golden = tests::load_golden("weights/" + GetParam() + ".json");
  const auto shape = golden.shape("ids");
  Batch batch;
  batch.B = shape.at(0), batch.T = shape.at(1);
  batch.ids = batch.targets = golden.ids("ids");
  for (std::int64_t i = 0; i < batch.B * batch.T; ++i) batch.positions.push_back(i % batch.T);
  Parameters<double> parameters;
  for (std::size_t i = 0; i < folder.inventory.parameters.size(); ++i)
    parameters.emplace(folder.inventory.parameters[i].name,
                       Tensor<double>(folder.inventory.parameters[i].shape, folder.values_of(i)));
  const auto forward = model::forward(parameters, folder.model, batch, {.normalizer = 1, .z_loss = 0});
  tests::Values logits = golden.tensor("logits");
  logits.shape = values(forward.logits).shape;
  ASSAY_EXPECT_CLOSE(values(forward.logits), logits, Allowed::relative(1e-9));
}

INSTANTIATE_TEST_SUITE_P(Families, WeightsGolden, testing::ValuesIn(tests::weight_folders()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace assay::reference::weights_golden_test
