// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/clip_grad_norm.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(ClipGradNormGolden, NormAndGradientsMatchTorchFloat64) {
  for (const char* name : {"clipped", "not_clipped", "small_norm"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/clip_grad_norm/") + name + ".json");
    std::vector<Tensor<double>> gradients;
    for (const char* number : {"0", "1", "2"})
      gradients.push_back(tests::tensor(golden.tensor(std::string("gradient.") + number)));
    const auto out = clip_grad_norm::clip<double>({&gradients[0], &gradients[1], &gradients[2]},
                                                  golden.scalar("max_norm"));
    EXPECT_NEAR(out.norm / golden.scalar("norm"), 1, 1e-10);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      ASSAY_EXPECT_CLOSE(values(gradients[i]), golden.tensor("clipped." + std::to_string(i)),
                         Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
