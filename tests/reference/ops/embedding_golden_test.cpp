// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/embedding.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(EmbeddingGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"repeated_ids", "sparse_ids"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/embedding/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto ids = golden.ids("ids");
    const auto table = tensor("table"), dy = tensor("dy");
    ASSAY_EXPECT_CLOSE(values(embedding::forward(table, ids).reshaped(dy.shape())), golden.tensor("y"),
                       Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(embedding::backward(dy, ids, table.extent(0))), golden.tensor("dtable"),
                       Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
