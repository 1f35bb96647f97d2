// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/rms_norm.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::rms_norm_golden_test {
namespace {

using tests::Allowed;
using tests::values;

TEST(RmsNormGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"basic", "one_entry", "eps_dominates", "large_values"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/rms_norm/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto out = rms_norm::forward(tensor("x"), tensor("gain"), golden.scalar("eps"));
    const auto gradient = rms_norm::backward(tensor("dy"), tensor("x"), tensor("gain"), out.rstd);
    ASSAY_EXPECT_CLOSE(values(out.y), golden.tensor("y"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.rstd), golden.tensor("rstd"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dx), golden.tensor("dx"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dgain), golden.tensor("dgain"), Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference::rms_norm_golden_test
