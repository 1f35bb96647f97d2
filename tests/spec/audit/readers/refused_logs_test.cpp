// labels: unit fault
// Files that are no logs, logs of trainers that are not read, and parts of logs: what the refusal names.
#include <gtest/gtest.h>

#include <sstream>

#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::refused_logs_test {
namespace {

using tests::expect_refused;
using tests::two_steps;

RunRecord read_one(const std::string& log) {
  std::istringstream in(log);
  return read_log(in, "log");
}

TEST(RefusedLogsSpec, WhatIsNoLogIsRefusedInOneLine) {
  expect_refused("", ExitCode::bad_data, "is empty");
  expect_refused(" \n\r\n\t\n", ExitCode::bad_data, "is empty");
  expect_refused(std::string(5000, '\0'), ExitCode::bad_data, "not text");
  expect_refused(
      "\x7f"
      "ELF\x02\x01\x01" +
          std::string(500, '\x03'),
      ExitCode::bad_data, "not text");
  expect_refused(
      "\x1f\x8b\x08"
      "abcdef",
      ExitCode::bad_data, "compressed");
  expect_refused(std::string("\xff\xfei\0t\0", 6), ExitCode::bad_data, "UTF-16");
  expect_refused("hello\nworld\n", ExitCode::bad_data, "no step line of a known trainer in 2 lines");
  expect_refused(std::string(3'000'000, 'x'), ExitCode::bad_data, "no step line");
  expect_refused("{\"iter\": 1", ExitCode::bad_data, "ends in the middle");
  expect_refused("{\n  \"log_history\": [\n {\"step\": 1, \"loss\": 2.0},\n", ExitCode::bad_data,
                 "ends in the middle");
  expect_refused("{\n \"a\": 1\n}\n", ExitCode::bad_data, "no known trainer");
  expect_refused(std::string(100000, '['), ExitCode::bad_data, "log");
  expect_refused("[{\"a\":" + std::string(100000, '['), ExitCode::bad_data, "deep");
  expect_refused("{\n\"log_history\": [{\"loss\": " + std::string(1'000'000, '9') + "}]}", ExitCode::bad_data,
                 "digits");
}

TEST(RefusedLogsSpec, ADamagedFirstLineOfJsonLinesIsCountedAndQuoted) {
  const std::string rest = "{\"step\":2,\"loss\":2.5}\n{\"step\":3,\"loss\":2.4}\n";
  for (const std::string& first : {std::string("{\"step\":1,\"loss\":2.6"), std::string("{\"step\":1,"),
                                   "{\"step\":1,\"loss\":" + std::string(10000, '1') + "}"}) {
    const RunRecord run = read_one(first + "\n" + rest);
    EXPECT_EQ(run.steps_seen, 2) << first.substr(0, 40);
    EXPECT_EQ(run.unread_lines, 1);
    ASSERT_EQ(run.unread_quotes.size(), 1u);
    EXPECT_EQ(run.unread_quotes[0].line, 1);
  }
  EXPECT_EQ(read_one("{\"step\":1,\"loss\":2.6\n{\"step\":2,\"loss\":2.5}\n").steps_seen, 1);
  // Documents stay documents, however their lines are broken.
  const std::string element = "{\"step\": 10, \"loss\": 2.5}";
  for (const std::string& document :
       {"{\"log_history\": [" + element + "]}\n", "{\"log_history\": [\n" + element + "\n]}\n",
        "{\"log_history\": [\n" + element + ",\n{\"step\": 20, \"loss\": 2.4}\n]}\n"}) {
    const RunRecord run = read_one(document);
    EXPECT_EQ(run.format.name, "hugging_face") << document;
    EXPECT_GE(run.steps_seen, 1) << document;
  }
  expect_refused("{\"log_history\": [\n" + element + "\n", ExitCode::bad_data, "ends in the middle");
}

TEST(RefusedLogsSpec, PathsThatHoldNoLog) {
  const tests::Scratch scratch;
  const auto code_of = [](const std::string& path) {
    try {
      read_logs(path);
    } catch (const UserError& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  };
  EXPECT_EQ(code_of((scratch.path() / "missing.log").string()), 2);
  EXPECT_EQ(code_of(scratch.path().string()), 2);
  EXPECT_EQ(code_of(scratch.write("empty.log", "").string()), 65);
  EXPECT_EQ(code_of(scratch.write("good.log", two_steps).string()), 0);
  scratch.write("run.jsonl", tests::render(tests::simulate(tests::LogFormat::assay, 1)));
  EXPECT_EQ(code_of(scratch.path().string()), 0) << "a run's folder is its run.jsonl";
}

TEST(RefusedLogsSpec, ConsolesThatAreNotReadAreNamed) {
  const std::pair<const char*, const char*> consoles[] = {
      {"DeepSpeed",
       "[2024-01-05 10:11:12,345] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], "
       "mom=[(0.9, "
       "0.95)]\n"},
      {"DeepSpeed",
       "[2024-01-05 10:11:12,345] [INFO] [timer.py:260:stop] epoch=0/micro_step=10/global_step=10, "
       "RunningAvgSamplesPerSec=12.1, CurrSamplesPerSec=12.2, MemAllocated=1.2GB, MaxMemAllocated=3.4GB\n"},
      {"nanochat",
       "step 00120/21400 (0.56%) | loss: 4.123456 | lrm: 1.00 | dt: 512.34ms | tok/sec: 1,023,456 | mfu: "
       "45.67 | total "
       "time: 0.94m\n"},
      {"torchtune", "1|52|Loss: 1.2345:  10%|#         | 52/520 [01:02<09:18,  1.19s/it]\n"},
      {"torchtune",
       "Step 52 | loss:1.2345 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:12.3 \n"},
      {"LitGPT", "Epoch 1 | iter 4 step 1 | loss train: 10.400, val: n/a | iter time: 299.27 ms (step)\n"},
      {"MaxText",
       "completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, "
       "total_weights: 196608, "
       "loss: 10.374\n"},
      {"OLMo", "    train/CrossEntropyLoss=11.42\n"},
      {"OLMo", "    throughput/device/tokens_per_second=26,541\n"},
      {"llama2.c", "480 | loss 5.8123 | lr 4.800000e-05 | 8051.12ms | mfu 0.22%\n"},
      {"prime-rl",
       "03:26:51 [INFO] [TRAIN] [Rank 0] step: 1, loss: 9.4000, tokens_per_second: 76957.79, mfu: 42.46\n"},
      {"fairseq", "| epoch 010  1000 / 8223 loss=1.26 (1.51), wps=961, wpb=907, bsz=32, lr=0.001\n"},
      {"Assay", "assay 0.1.0: training tiny-llama\n"},
      {"Assay",
       "step  1/12  loss  5.6097  norm  5.991  lr 3.00e-03     13,578 tok/s  MFU     -  elapsed 0.10 s\n"},
      {"tinygrad", "    4 7.21 s run, 11.8125 loss, 0.000000000003 LR, 1454.57 GB used, 240512.10 GFLOPS\n"}};
  for (const auto& [trainer, line] : consoles) {
    std::istringstream in("loading\n" + std::string(line));
    try {
      read_log(in, "log");
      ADD_FAILURE() << trainer;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("line 2 looks like " + std::string(trainer) + "'s console"),
                std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("--map"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find("audit the run's record, its run.jsonl") != std::string::npos,
                std::string(trainer) == "Assay");
    }
  }
}

/// A document inside a quotation, and a summary without its run: what is missing is said.
TEST(RefusedLogsSpec, PartsOfKnownLogsAreNamedInTheRefusal) {
  const std::pair<const char*, const char*> logs[] = {
      {"line 3 is of a JSON document that other text stands around",
       "> {\n>   \"global_step\": 2,\n>   \"log_history\": [\n>     {\"loss\": 2.5, \"step\": 1}\n>   ]\n> "
       "}\n"},
      {"line 4 is of a JSON document that other text stands around",
       "my state:\n```json\n{\n  \"training_iterations\": []\n}\n```\n"},
      {"line 1 is of a JSON document whose steps are no list", "{\"log_history\": 5}\n"},
      {"line 2 is of numbers with an exponent above 308",
       "a log\n{'loss': 1e400, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.01}\n"},
      {"line 2 is of a Hugging Face summary",
       "```\n{'train_runtime': '2219', 'train_samples_per_second': '1.474', 'train_loss': '0.7228'}\n```\n"}};
  for (const auto& [what, log] : logs) {
    std::istringstream in(log);
    try {
      read_log(in, "log");
      ADD_FAILURE() << log;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  }
}

TEST(RefusedLogsSpec, OthersAreRefusedWithWhatToDo) {
  for (const char* log :
       {"Epoch 1 | iter 4 step 1 | loss train: 10.400, val: n/a | iter time: 299.27 ms (step)\n",
        "490 | loss 5.7543 | lr 4.900000e-05 | 8060.78ms | mfu 0.21%\n",
        "03:26:51 [INFO] [TRAIN] [Rank 0] step: 1, loss: 9.4000, tokens_per_second: 76957.79, mfu: "
        "42.46\n"}) {
    std::istringstream in(log);
    try {
      read_log(in, "log");
      ADD_FAILURE() << log;
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find("--map"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace assay::spec::audit::refused_logs_test
