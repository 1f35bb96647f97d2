// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/attention.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(AttentionGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"one_document", "gqa_documents", "mqa_odd", "one_token"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/attention/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto documents = golden.ids("documents");
    const auto q = tensor("q"), k = tensor("k"), v = tensor("v");
    const auto out = attention::forward(q, k, v, documents);
    const auto gradient = attention::backward(tensor("dout"), q, k, v, out, documents);
    ASSAY_EXPECT_CLOSE(values(out.y), golden.tensor("out"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.lse), golden.tensor("logsumexp"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dq), golden.tensor("dq"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dk), golden.tensor("dk"), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(gradient.dv), golden.tensor("dv"), Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
