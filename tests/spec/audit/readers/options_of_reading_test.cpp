// labels: unit fault
// What the command line states and maps, and how what it cannot mean is refused.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/refusal.hpp"

namespace assay::spec::audit::options_of_reading_test {
namespace {

using tests::expect_refused;
using tests::read_text;
using tests::two_steps;

RunRecord read_one(const std::string& log, const ReadOptions& options = {}) {
  std::istringstream in(log);
  return read_log(in, "log", options);
}

TEST(OptionsOfReadingSpec, WhatCannotBeUnderstoodIsAUsageError) {
  const std::string csv = "iter,loss\n1,2.5\n";
  expect_refused(csv, ExitCode::usage, "did you mean \"step\"",
                 {.map = "stepp=iter", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "unknown unit",
                 {.map = "step=iter:parsec", .set = "", .step_check = {}});
  for (const auto& [map, said] :
       {std::pair("step=iter,loss=loss:ms", "\"ms\" is no unit of loss; it takes none"),
        std::pair("loss=loss:TFLOPS", "\"TFLOPS\" is no unit of loss; it takes none"),
        std::pair("seconds=loss:GB", "\"GB\" is no unit of seconds; it takes s ms us ns min h"),
        std::pair("tokens_total=loss:B", "\"B\" is no unit of tokens_total; it takes k M G T P")})
    expect_refused(csv, ExitCode::usage, said, {.map = map, .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "NAME=VALUE", {.map = "step", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "step is given twice, as \"iter\" and \"loss\"",
                 {.map = "step=iter,step=loss", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "none of its columns",
                 {.map = "step=nothing", .set = "", .step_check = {}});
  expect_refused(csv, ExitCode::usage, "no column \"itr\"; its first line names \"iter, loss\"",
                 {.map = "step=itr,loss=loss", .set = "", .step_check = {}});
  expect_refused("{\"iter\": 1, \"loss\": 2.5}\n", ExitCode::usage,
                 "no column \"itr\"; no line holds a number",
                 {.map = "step=itr,loss=loss", .set = "", .step_check = {}});
  // Each line need not hold every column; one with a step's number alone says nothing of it.
  EXPECT_EQ(read_one("{\"iter\": 1}\n{\"loss\": 2.5}\n",
                     {.map = "step=iter,loss=loss", .set = "", .step_check = {}})
                .steps_seen,
            1);
  expect_refused(two_steps, ExitCode::usage, "did you mean \"gpus\"",
                 {.map = "", .set = "gpuss=8", .step_check = {}});
  for (const auto& [set, said] :
       {std::pair("gpus=8.5", "must be an integer"), std::pair("gpus=1e30", "must be an integer below 2^62"),
        std::pair("layers=1e-3", "must be an integer"),
        std::pair("max_steps=0.5k,warmup_steps=0.5", "integer"),
        std::pair("gpu=Foo", "GPU \"Foo\" is not known"), std::pair("gpu=A100", "may be any of"),
        std::pair("model=Foo", "no model and no file is called \"Foo\""),
        std::pair("dtype=int4", "no dtype that a data sheet has a peak of"),
        std::pair("dtype=foo", "known are fp64, "), std::pair("dtype=bf61", "did you mean \"bf16\""),
        std::pair("schedule=bar", "no schedule that is judged; known are constant, linear, cosine, "),
        std::pair("schedule=cosin", "did you mean \"cosine\""),
        std::pair("device=tpu", "neither cpu nor cuda")})
    expect_refused(two_steps, ExitCode::usage, said, {.map = "", .set = set, .step_check = {}});
  for (const char* set : {"gpus=8", "gpus=1e3", "tokens_per_step=4.19M", "max_steps=0.5k", "parameters=1.24G",
                          "gpu=NVIDIA H200", "model=llama3-8b", "device=cpu", "dtype=bfloat16",
                          "dtype=fp8_hybrid", "dtype=16-mixed", "schedule=WSD", "schedule=cosine_with_min_lr",
                          "schedule=inverse-square-root", "learning_rate=6e-4"}) {
    std::istringstream in(two_steps);
    EXPECT_NO_THROW(read_logs(in, "x", {.map = "", .set = set, .step_check = {}})) << set;
  }
  expect_refused(two_steps, ExitCode::usage, "micro is given twice, as \"1\" and \"2\"",
                 {.map = "", .set = "micro=1,gpus=8,micro=2", .step_check = {}});
  expect_refused(two_steps, ExitCode::usage, "is no number",
                 {.map = "", .set = "gpus=many", .step_check = {}});
}

TEST(OptionsOfReadingSpec, StatedSettingsReplaceThoseOfTheLog) {
  ReadOptions options;
  options.set = "gpus=8, gpu=NVIDIA B200,peak_flops=2.25e15,gpu_memory=192GB,model=gpt2";
  const RunRecord run = read_one(two_steps, options);
  EXPECT_EQ(run[Setting::gpus]->value, 8);
  EXPECT_EQ(run.gpu, "NVIDIA B200");
  EXPECT_DOUBLE_EQ(run[Setting::peak_flops]->value, 2.25e15);
  EXPECT_DOUBLE_EQ(run[Setting::gpu_memory]->value, 192e9);
  EXPECT_EQ(run.model, "gpt2");
}

TEST(OptionsOfReadingSpec, AUnitOfSomethingElseIsRefusedWithTheNearestForm) {
  const std::pair<const char*, const char*> refused[] = {
      {"gpu_memory=141gb", "write it like gpu_memory=141GB"},
      {"gpu_memory=141s", "takes B kB MB GB TB KiB MiB GiB TiB; write it like gpu_memory=141GB"},
      {"gpu_memory=141", "gpu_memory=141GB"},
      {"peak_flops=989", "peak_flops=989TFLOPS"},
      {"sequence_length=2k", "takes no unit; write sequence_length=2000, or sequence_length=2048"},
      {"vocab=32%", "vocab takes no unit; write vocab=32"},
      {"gpus=8GB", "gpus takes no unit; write gpus=8"},
      {"average_seconds=3k", "write it like average_seconds=3s"},
      {"average_mfu=41ms", "write it like average_mfu=41%"},
      {"max_steps=10ms", "write it like max_steps=10k"},
      {"tokens_per_second=7000", "--map tokens_per_second=COLUMN"}};
  for (const auto& [set, said] : refused) {
    ReadOptions options;
    options.set = set;
    try {
      read_one(two_steps, options);
      ADD_FAILURE() << set;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    }
  }
  ReadOptions options;
  options.set =
      "gpu_memory=141GB,peak_flops=989TFLOPS,total_tokens=82G,total_seconds=3h,average_mfu=41%,max_steps=10k";
  const RunRecord run = read_one(two_steps, options);
  EXPECT_EQ(run[Setting::gpu_memory]->value, 141e9);
  EXPECT_EQ(run[Setting::total_seconds]->value, 10800);
  EXPECT_EQ(run[Setting::max_steps]->value, 10000);
}

TEST(OptionsOfReadingSpec, WhatTheCommandLineStatedIsToldFromTheLogsOwnWords) {
  ReadOptions options;
  options.map = "step=step,loss=loss,seconds=ms:ms";
  options.set = "gpus=8,gpu=NVIDIA B200";
  RunRecord run = read_one("step,loss,ms\n1,2.5,100\n2,2.25,101\n", options);
  ASSERT_TRUE(run.stated_for(Setting::gpus) && run.stated_for("gpu") && run.mapped_for(Field::seconds));
  EXPECT_EQ(run.stated_for(Setting::gpus)->option, "--set gpus=8");
  EXPECT_FALSE(run.stated_for(Setting::gpus)->log_number) << "the log says nothing of it";
  EXPECT_EQ(run.stated_for("gpu")->option, "--set gpu=NVIDIA B200");
  EXPECT_EQ(run.mapped_for(Field::seconds)->option, "--map seconds=ms:ms");
  EXPECT_FALSE(run.stated_for(Setting::micro) || run.mapped_for(Field::mfu));
  // An option that takes the place of the log's number, and another that takes the place of the first.
  run[Setting::micro] = exactly(4, 17);
  run.state(Setting::micro, exactly(8), "--set micro=8");
  run.state(Setting::micro, exactly(16), "--micro 16");
  EXPECT_EQ(run[Setting::micro]->value, 16);
  EXPECT_EQ(run.stated_for(Setting::micro)->option, "--micro 16");
  EXPECT_EQ(run.stated_for(Setting::micro)->log_number, exactly(4, 17));
  EXPECT_TRUE(read_one(two_steps).stated.empty() && read_one(two_steps).mapped.empty());
}

TEST(OptionsOfReadingSpec, TablesWhoseColumnsAreNamedLikeFieldsNeedNoMapping) {
  const RunRecord csv = read_one("step;loss;tokens_per_second\n1;2.5;1000\n2;2.25;1001\n");
  ASSERT_EQ(csv.steps.size(), 2u);
  EXPECT_EQ(csv.steps[1][Field::loss]->value, 2.25);
  const RunRecord json =
      read_one("{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"loss\": 2.25, \"note\": \"x\"}\n");
  ASSERT_EQ(json.steps.size(), 2u);
  EXPECT_EQ(json.steps[1][Field::loss]->value, 2.25);
}

std::string of_times(const std::string& first, const std::string& second) {
  return "{\"n\": 5, \"loss\": 1.7484, \"t\": \"" + first + "\"}\n{\"n\": 10, \"loss\": 1.7329, \"t\": \"" +
         second + "\"}\n";
}

TEST(OptionsOfReadingSpec, TimesMayBeWrittenAsClocksDo) {
  const RunRecord json = read_text(of_times("0:03:29", "4 days, 5:06:09"), "", "step=n,loss=loss,elapsed=t");
  const RunRecord table =
      read_text("n,loss,t\n5,1.7,00:03:29\n10,1.6,\"4 days, 5:06:09\"\n", "", "step=n,loss=loss,elapsed=t");
  for (const RunRecord& run : {json, table}) {
    ASSERT_EQ(run.steps.size(), 2u);
    ASSERT_TRUE(run.steps[0][Field::elapsed] && run.steps[1][Field::elapsed]);
    EXPECT_EQ(run.steps[0][Field::elapsed]->value, 209);
    EXPECT_EQ(run.steps[1][Field::elapsed]->value, 4 * 86400 + 5 * 3600 + 6 * 60 + 9);
    // Seconds that are cut off, as those that are rounded.
    EXPECT_EQ(run.steps[0][Field::elapsed]->low, 208.5);
    EXPECT_EQ(run.steps[0][Field::elapsed]->high, 210);
  }
}

TEST(OptionsOfReadingSpec, AMappedKeyThatHoldsNoNumberIsNamedAlone) {
  for (const char* no_time : {"03:29", "0:99:29", "soon", "a days, 5:06:09", "0:03:29:11", ":::"})
    expect_refused(of_times(no_time, no_time), ExitCode::usage, "no column \"t\"; ",
                   {.map = "step=n,loss=loss,elapsed=t", .set = "", .step_check = {}});
  expect_refused(of_times("0:03:29", "0:07:03"), ExitCode::usage, "no column \"t\"; ",
                 {.map = "step=n,loss=loss,elapsed=t:ms", .set = "", .step_check = {}});
}

TEST(OptionsOfReadingSpec, BillionsOfParametersAndTokensMayBeB) {
  const RunRecord run = read_text(of_times("0:03:29", "0:07:03"), "parameters=6.74B,total_tokens=15B");
  EXPECT_DOUBLE_EQ(run[Setting::parameters]->value, 6.74e9);
  EXPECT_DOUBLE_EQ(run[Setting::total_tokens]->value, 15e9);
  EXPECT_EQ(read_text(of_times("0:03:29", "0:07:03"), "gpu_memory=80000000000B")[Setting::gpu_memory]->value,
            80e9);
  expect_refused(of_times("0:03:29", "0:07:03"), ExitCode::usage, "is no unit of max_steps",
                 {.map = "", .set = "max_steps=2B", .step_check = {}});
  expect_refused(of_times("0:03:29", "0:07:03"), ExitCode::usage, "parameters=6.74B",
                 {.map = "", .set = "parameters=6.74b", .step_check = {}});
}

}  // namespace
}  // namespace assay::spec::audit::options_of_reading_test
