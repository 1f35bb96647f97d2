// How another trainer's tests hold its numbers together: build a record of what it would print, assert.
#include <gtest/gtest.h>

#include <assay/expect_consistent.hpp>

namespace {

using namespace assay::spec::audit;

/// What a trainer on 8 GPUs prints of 100 steps, made by the code under test; here it is written out.
RunRecord my_trainer(double tokens_per_second) {
  RunRecord record;
  record.origin = "my trainer";
  record.format.tokens_per_second = Scope::all;
  record.gpu = "NVIDIA H100 80GB HBM3";
  record.model = "llama3-8b";
  record[Setting::gpus] = exactly(8);
  record[Setting::sequence_length] = exactly(4096);
  record[Setting::micro] = exactly(1);
  record[Setting::accumulation] = exactly(4);
  record[Setting::sequences] = exactly(32);
  for (int i = 1; i <= 100; ++i) {
    Step step;
    step[Field::step] = exactly(i);
    step[Field::seconds] = *parse_printed("1.639", Kind::measured);
    step[Field::tokens_per_second] = *parse_printed(std::to_string(tokens_per_second), Kind::measured);
    record.steps.push_back(step);
  }
  record.steps_seen = 100;
  return record;
}

TEST(MyTrainer, PrintsNumbersThatAgree) { EXPECT_CONSISTENT(my_trainer(32 * 4096 / 1.639)); }

TEST(MyTrainer, OneRanksRateIsCaught) {
  EXPECT_FALSE(consistent(my_trainer(4 * 4096 / 1.639)));
  EXPECT_EQ(contradictions(my_trainer(4 * 4096 / 1.639)).rfind("rate_time: ", 0), 0u);
}

}  // namespace
