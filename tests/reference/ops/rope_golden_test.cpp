// labels: golden
#include <gtest/gtest.h>

#include "reference/ops/rope.hpp"
#include "spec/ops/rope.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference {
namespace {

using tests::Allowed;
using tests::values;

TEST(RopeGolden, ValuesAndGradientsMatchTorchFloat64) {
  for (const char* name : {"plain", "positions_restart", "llama3_scaling", "llama3_small_context"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/rope/") + name + ".json");
    const auto tensor = [&](const char* key) { return tests::tensor(golden.tensor(key)); };
    std::optional<spec::RopeScaling> scaling;
    if (golden.scalars.contains("factor"))
      scaling = {.factor = golden.scalar("factor"),
                 .low_freq_factor = golden.scalar("low_freq_factor"),
                 .high_freq_factor = golden.scalar("high_freq_factor"),
                 .original_context = static_cast<std::int64_t>(golden.scalar("original_context"))};
    const auto expected = golden.tensor("inverse_frequency");
    const auto frequencies =
        spec::rope::inverse_frequencies(golden.shape("x").back(), golden.scalar("theta"), scaling);
    for (std::size_t e = 0; e < expected.data.size(); ++e)
      EXPECT_NEAR(frequencies.at(e) / expected.data[e], 1, 1e-14)
          << e;  // each: the smallest are 1e-5 of the largest
    const auto positions = golden.ids("positions");
    ASSAY_EXPECT_CLOSE(values(rope::forward(tensor("x"), positions, frequencies)), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(rope::backward(tensor("dy"), positions, frequencies)), golden.tensor("dx"),
                       Allowed::relative(1e-10));
  }
}

}  // namespace
}  // namespace assay::reference
