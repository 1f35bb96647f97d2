// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/swiglu.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(SwigluGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"basic", "saturated"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/swiglu/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto gradient = swiglu::backward(tensor("dy"), tensor("gate"), tensor("up"));
    ASSAY_EXPECT_CLOSE(values(swiglu::forward(tensor("gate"), tensor("up"))), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dgate), golden.tensor("dgate"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dup), golden.tensor("dup"), Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
