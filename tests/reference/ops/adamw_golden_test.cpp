// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/adamw.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::Values;
using tests::values;

/// Entry `step` of values stacked along the first axis.
Values slice(const Values& stacked, std::int64_t step) {
  const std::vector<std::int64_t> shape(stacked.shape.begin() + 1, stacked.shape.end());
  const auto size = static_cast<std::ptrdiff_t>(stacked.data.size()) / stacked.shape[0];
  const auto begin = stacked.data.begin() + step * size;
  return {shape, {begin, begin + size}};
}

TEST(AdamwGolden, TwentyStepsMatchTorchFloat64) {
  for (const char* name : {"trajectory", "tiny_gradients"}) {
    const auto golden = tests::load_golden(std::string("ops/adamw/") + name + ".json");
    const auto rates = golden.tensor("learning_rates").data;
    for (const std::string parameter : {"matrix", "gain", "one"}) {
      const auto gradients = golden.tensor(parameter + ".gradients"),
                 after = golden.tensor(parameter + ".after");
      auto theta = tests::tensor(golden.tensor(parameter + ".initial"));
      Tensor<double> m(theta.shape()), v(theta.shape());
      for (std::int64_t step = 0; step < static_cast<std::int64_t>(golden.scalar("steps")); ++step) {
        SCOPED_TRACE(std::string(name) + ", " + parameter + ", step " + std::to_string(step + 1));
        adamw::update(theta, tests::tensor(slice(gradients, step)), m, v,
                      {.learning_rate = rates.at(static_cast<std::size_t>(step)),
                       .beta1 = golden.scalar("beta1"),
                       .beta2 = golden.scalar("beta2"),
                       .eps = golden.scalar("eps"),
                       .weight_decay = golden.scalar(parameter + ".weight_decay"),
                       .step = step + 1});
        ASSAY_EXPECT_CLOSE(values(theta), slice(after, step), Allowed::relative(1e-10));
      }
      ASSAY_EXPECT_CLOSE(values(m), golden.tensor(parameter + ".exp_avg"), Allowed::relative(1e-10));
      ASSAY_EXPECT_CLOSE(values(v), golden.tensor(parameter + ".exp_avg_sq"), Allowed::relative(1e-10));
    }
  }
}

}  // namespace
}  // namespace assay::reference
