// labels: unit
// A state of Hugging Face's whose epoch jumps behind its last line, or which planned more steps than its run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::done_before_the_plan_test {
namespace {

/// 125 steps in two passes, a line every ten; 3.1 s a step.
struct Done {
  double epochs_of_lines = 1;  ///< of what they should be
  int steps = 125, max_steps = 125, planned_passes = 2;
  double steps_per_second = 0.323, end = 2;  ///< the state's epoch
  int batches_of_a_pass = 500, accumulation = 8;
  bool two_digits = false;

  Result of(const char* id) const {
    std::string out = "{\"log_history\": [\n";
    char line[200];
    const int every = steps < 20 ? 1 : 10, of_pass = (batches_of_a_pass + accumulation - 1) / accumulation;
    const auto epoch_at = [&](int step) {
      const int within = (step - 1) % of_pass + 1, passes = (step - 1) / of_pass;
      return passes + std::min(1.0, static_cast<double>(within) * accumulation / batches_of_a_pass);
    };
    for (int step = every; step < steps; step += every) {
      std::snprintf(line, sizeof line,
                    two_digits
                        ? "{\"epoch\": %.2f, \"loss\": %.4f, \"learning_rate\": 1e-5, \"step\": %d},\n"
                        : "{\"epoch\": %.16g, \"loss\": %.4f, \"learning_rate\": 1e-5, \"step\": %d},\n",
                    epochs_of_lines * epoch_at(step), 2 - 0.001 * step, step);
      out += line;
    }
    std::snprintf(line, sizeof line,
                  "{\"epoch\": %.2f, \"step\": %d, \"train_loss\": 1.94, \"train_runtime\": %.2f, "
                  "\"train_steps_per_second\": %.3f}],\n",
                  end, steps, 3.1 * steps, steps_per_second);
    out += line;
    std::snprintf(line, sizeof line,
                  "\"epoch\": %.2f, \"global_step\": %d, \"max_steps\": %d, \"num_train_epochs\": %d, "
                  "\"train_batch_size\": 8}\n",
                  end, steps, max_steps, planned_passes);
    return judge(id, tests::read_text(out + line));
  }
};

TEST(DoneBeforeThePlanSpec, AnEpochThatJumpsBehindTheLastLineContradicts) {
  Done slow;
  slow.epochs_of_lines = 0.5;
  const Result told = slow.of("epochs");
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.causes.at(0).id, "epoch_jumps");
}

TEST(DoneBeforeThePlanSpec, AnEpochGoesOnAsItsLinesDo) {
  Done whole, rounded;
  rounded.two_digits = true;
  EXPECT_EQ(whole.of("epochs").verdict, Verdict::holds);
  EXPECT_EQ(rounded.of("epochs").verdict, Verdict::holds);
  // A pass of one batch more than a step: every other step is of that batch alone.
  Done short_steps;
  short_steps.batches_of_a_pass = 9, short_steps.steps = short_steps.max_steps = 8;
  short_steps.planned_passes = 4, short_steps.end = 4;
  EXPECT_EQ(short_steps.of("epochs").verdict, Verdict::holds);
}

TEST(DoneBeforeThePlanSpec, APlanOfMoreStepsThanAllPassesTookContradicts) {
  Done done;
  done.max_steps = 250;
  const Result told = done.of("planned_steps");
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.causes.at(0).id, "planned_steps_other");
  EXPECT_EQ(told.printed, 250);
  EXPECT_EQ(told.recomputed.low, 125);
}

TEST(DoneBeforeThePlanSpec, ARunThatStoppedEarlyHolds) {
  Done stopped;  // steps/s are those of the planned steps, whether they were done or not
  stopped.max_steps = 250, stopped.planned_passes = 4, stopped.steps_per_second = 0.645;
  EXPECT_EQ(stopped.of("planned_steps").verdict, Verdict::holds);
  Done counted = stopped;  // of those that were done, as another program may count
  counted.steps_per_second = 0.323;
  EXPECT_EQ(counted.of("planned_steps").verdict, Verdict::holds);
  Done data_ended = stopped;  // all passes were begun, and the data had fewer batches than it said
  data_ended.planned_passes = 2;
  EXPECT_EQ(data_ended.of("planned_steps").verdict, Verdict::holds);
}

}  // namespace
}  // namespace assay::spec::audit::done_before_the_plan_test
