// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/cross_entropy.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(CrossEntropyGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"mean", "ignored", "z_loss", "global_normaliser", "all_ignored"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/cross_entropy/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    const auto logits = tensor("logits");
    const auto targets = golden.ids("targets");
    const double normalizer = golden.scalar("normaliser"), z_loss = golden.scalar("z_loss");
    const auto scalar = [](double value) { return tests::Values{{}, {value}}; };
    const auto out = cross_entropy::forward(logits, targets, normalizer, z_loss);
    const auto dlogits = cross_entropy::backward(1.0, logits, targets, out.lse, normalizer, z_loss);
    ASSAY_EXPECT_CLOSE(scalar(out.loss), scalar(golden.scalar("loss")), Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(scalar(out.cross_entropy), scalar(golden.scalar("nll_sum") / normalizer),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(scalar(out.z_loss), scalar(golden.scalar("z_sum") / normalizer),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(out.lse), golden.tensor("logsumexp"), Allowed::relative(1e-10));
    EXPECT_EQ(out.valid, static_cast<Index>(golden.scalar("valid")));
    EXPECT_TRUE(
        tests::close(values(dlogits), golden.tensor("dlogits"), Allowed::relative(1e-10), out.valid == 0));
  }
}

}  // namespace
}  // namespace assay::reference
