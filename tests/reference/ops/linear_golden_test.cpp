// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/linear.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(LinearGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"basic", "one_row", "one_output"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/linear/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto gradient = linear::backward(tensor("dy"), tensor("x"), tensor("weight"));
    ASSAY_EXPECT_CLOSE(values(linear::forward(tensor("x"), tensor("weight"))), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dx), golden.tensor("dx"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dweight), golden.tensor("dweight"), Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
