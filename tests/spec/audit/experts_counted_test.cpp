// labels: unit
// FLOPs of all experts in the place of those that a token is routed to.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/flops/conventions.hpp"
#include "tests/spec/audit/result_of.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::experts_counted_test {
namespace {

/// Lines of 400,000 tokens/s of 64 GPUs, and FLOP/s by so many of Mixtral's eight experts.
RunRecord mixtral(Convention convention, std::int64_t active) {
  ModelSpec model = find_model("mixtral-8x7b");
  model.experts->active = active;
  const double flops = 4e5 * flops_per_token(convention, model, 4096).flops->to_double();
  std::string log;
  for (int i = 1; i <= 12; ++i) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "{\"step\": %d, \"loss\": %.4f, \"tokens_per_second\": 400000, \"flops_rate\": %.6e}\n", i,
                  9.0 - 0.1 * i, flops);
    log += line;
  }
  return tests::read_text(log, "gpus=64,model=mixtral-8x7b,sequence_length=4096");
}

TEST(ExpertsCountedSpec, AllExpertsAreToldByTheirName) {
  const Audit told = audit(mixtral(Convention::exact, 8));
  EXPECT_EQ(tests::result_of(told, "flops_rate").verdict, Verdict::contradicts);
  EXPECT_EQ(tests::first_cause(told), "experts_all_counted");
  for (const Convention convention : {Convention::exact, Convention::palm_total})
    EXPECT_FALSE(audit(mixtral(convention, 2)).contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::experts_counted_test
