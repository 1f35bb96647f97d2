// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/qk_norm.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(QkNormGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"gqa", "one_head"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/qk_norm/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto q = tensor("q"), k = tensor("k"), q_gain = tensor("q_gain"), k_gain = tensor("k_gain");
    const auto out = qk_norm::forward(q, k, q_gain, k_gain, golden.scalar("eps"));
    const auto gradient = qk_norm::backward(tensor("dq_out"), tensor("dk_out"), q, k, q_gain, k_gain, out);
    ASSAY_EXPECT_CLOSE(values(out.q), golden.tensor("q_out"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.k), golden.tensor("k_out"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dq), golden.tensor("dq"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dk), golden.tensor("dk"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dq_gain), golden.tensor("dq_gain"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dk_gain), golden.tensor("dk_gain"), Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
