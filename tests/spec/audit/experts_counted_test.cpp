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

/// Lines of 400,000 tokens/s of 64 GPUs, and FLOP/s of the model by all of its experts or the active ones.
RunRecord sparse(const std::string& name, Convention convention, bool all) {
  ModelSpec model = find_model(name);
  if (all) model.experts->active = model.experts->count, model.experts->active_groups = model.experts->groups;
  const double flops = 4e5 * flops_per_token(convention, model, 4096).flops->to_double();
  std::string log;
  for (int i = 1; i <= 12; ++i) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "{\"step\": %d, \"loss\": %.4f, \"tokens_per_second\": 400000, \"flops_rate\": %.6e}\n", i,
                  9.0 - 0.1 * i, flops);
    log += line;
  }
  return tests::read_text(log, "gpus=64,model=" + name + ",sequence_length=4096");
}

TEST(ExpertsCountedSpec, AllExpertsAreToldByTheirName) {
  for (const char* name : {"mixtral-8x7b", "deepseek-v3"}) {  // without and with groups of experts
    SCOPED_TRACE(name);
    const Audit told = audit(sparse(name, Convention::exact, true));
    EXPECT_EQ(tests::result_of(told, "flops_rate").verdict, Verdict::contradicts);
    EXPECT_EQ(tests::first_cause(told), "experts_all_counted");
  }
  for (const Convention convention : {Convention::exact, Convention::palm_total})
    EXPECT_FALSE(audit(sparse("mixtral-8x7b", convention, false)).contradicts);
}

}  // namespace
}  // namespace assay::spec::audit::experts_counted_test
