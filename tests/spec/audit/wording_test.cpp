// labels: unit
// What causes and places are called.
#include <gtest/gtest.h>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::wording_test {
namespace {

Result of(const Audit& audit, const std::string& id) {
  for (const Result& result : audit.results)
    if (result.id == id) return result;
  ADD_FAILURE() << id;
  return {};
}

using tests::read_mapped;

TEST(WordingSpec, AStepWithoutANumberIsNamedByItsLine) {
  const Audit one =
      audit(read_mapped("loss,time\n9.5,0.5\n9.1,0.5\nnan,0.5\nnan,0.5\n", "loss=loss,seconds=time"));
  EXPECT_EQ(of(one, "loss_finite").causes.at(0).text,
            "the run diverged at the step of line 4; no later step of it trains a model");
  const Audit numbered =
      audit(read_mapped("step,loss,time\n1,9.5,0.5\n2,nan,0.5\n", "step=step,loss=loss,seconds=time"));
  EXPECT_EQ(of(numbered, "loss_finite").causes.at(0).text,
            "the run diverged at step 2; no later step of it trains a model");
}

TEST(WordingSpec, ALineIsToldOnce) {
  const Audit one =
      audit(read_mapped("{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 1e-4, 'epoch': 0.1}\n"
                        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-4, 'epoch': 0.2}\n"));
  const Result result = of(one, "loss_finite");
  ASSERT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.contradicted, 2);
  EXPECT_EQ(result.lines, std::vector<std::int64_t>{2});
}

}  // namespace
}  // namespace assay::spec::audit::wording_test
