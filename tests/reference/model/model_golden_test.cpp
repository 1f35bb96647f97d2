// labels: golden
#include <gtest/gtest.h>

#include "reference/model/balancing.hpp"
#include "reference/model/model.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

// golden/models/*: logits, loss and every gradient of Hugging Face transformers in float64; of mixtures of
// experts also the balance loss of their routers, whose gradient is among the others.

namespace assay::reference::model_golden_test {
namespace {

using tests::Allowed;
using tests::values;

/// Both sides sum in double, in different orders; the issue of this comparison is a wrong term, not a
/// rounding.
const Allowed allowed = Allowed::relative(1e-9);

class ModelReferenceGolden : public testing::TestWithParam<const char*> {};

TEST_P(ModelReferenceGolden, LogitsLossAndGradientsAreThoseOfTransformers) {
  const std::string path = std::string("models/") + GetParam();
  const auto golden = tests::load_golden(path + ".safetensors");
  const auto model = spec::model_from_hugging_face(tests::golden_bytes(path + ".json"), path + ".json");
  const auto shape = golden.shape("ids");
  const Batch batch{.B = shape.at(0),
                    .T = shape.at(1),
                    .ids = golden.ids("ids"),
                    .targets = golden.ids("targets"),
                    .documents = golden.ids("documents"),
                    .positions = golden.ids("positions")};
  Parameters<double> parameters;
  for (const auto& [name, value] : zeros(model)) {
    const auto stored = golden.tensor("parameters/" + name);
    parameters.emplace(name, Tensor<double>(stored.shape, stored.data));
  }

  const model::Loss loss{.normalizer = static_cast<double>(batch.valid_tokens()), .z_loss = 0};
  const auto forward = model::forward(parameters, model, batch, loss);
  ASSAY_EXPECT_CLOSE(values(forward.logits), golden.tensor("logits"), allowed);
  ASSAY_EXPECT_CLOSE((tests::Values{{1}, {forward.loss.loss}}), (tests::Values{{1}, {golden.scalar("loss")}}),
                     allowed);
  EXPECT_EQ(static_cast<double>(forward.loss.valid), golden.scalar("valid"));

  balancing::Settings settings{.form = balancing::Form::hugging_face};
  const bool balanced = golden.scalars.contains("balance_coefficient");  // DeepSeek-V3 has no such loss
  if (balanced) settings.coefficient = golden.scalar("balance_coefficient");
  const auto balance = balancing::balance({forward}, {batch}, model, settings);
  if (balanced) {
    ASSAY_EXPECT_CLOSE((tests::Values{{1}, {balance.balance}}),
                       (tests::Values{{1}, {golden.scalar("balance_loss")}}), allowed);
  }
  const auto gradients =
      model::backward(forward, parameters, model, batch, loss, {}, balance.upstreams.front());
  std::size_t compared = 0;
  for (const auto& name : golden.tensor_names()) {
    if (name.rfind("gradients/", 0) != 0) continue;
    SCOPED_TRACE(name);
    const bool of_expert = name.find(".experts.") != std::string::npos;  // zeros where no token visits it
    EXPECT_TRUE(tests::close(values(gradients.at(name.substr(10))), golden.tensor(name), allowed, of_expert));
    ++compared;
  }
  EXPECT_EQ(compared, gradients.size());
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelReferenceGolden,
    testing::Values("llama_tied_one_layer", "llama_gqa2", "llama_gqa4_scaled_rope", "llama_packed",
                    "geglu_gqa2", "geglu_packed_tied", "qwen2_one_layer", "qwen2_tied_gqa3",
                    "qwen2_packed_gqa2", "qwen3_one_layer", "qwen3_tied_gqa4", "qwen3_packed_gqa2",
                    "mistral_window", "mistral_window_packed", "mixtral_gqa2", "mixtral_packed_window",
                    "qwen3_moe_one_layer", "qwen3_moe_every_second", "qwen3_moe_dense_first_packed",
                    "olmoe_gqa2", "olmoe_packed_renormalised", "deepseek_v3_dense",
                    "deepseek_v3_dense_direct_queries", "deepseek_v3_dense_halves", "deepseek_v3_dense_yarn",
                    "deepseek_v3_dense_yarn_packed", "deepseek_v3_dense_packed", "qwen3_yarn",
                    "deepseek_v3_sparse", "deepseek_v3_sparse_packed", "deepseek_v3_sparse_one_group"),
    [](const auto& case_) { return std::string(case_.param); });

}  // namespace
}  // namespace assay::reference::model_golden_test
