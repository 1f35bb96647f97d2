// labels: unit
// Pieces of logs as people have them: nohup headers, launchers' and wandb's lines, progress bars, colours,
// ranks that name themselves or do not, validations between the steps. What must be read of each, and that
// nothing of it contradicts. Lines follow what the trainers print in public issues; numbers are mostly made
// up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tests/spec/audit/readers/as_printed.hpp"

namespace assay::spec::audit::as_printed_test {
namespace {

using as_printed::lines;
using as_printed::read;
using as_printed::setting;
using as_printed::values;

TEST(AsPrintedSpec, NanoGptAfterNohupWithTimesAndWandb) {
  const RunRecord run = read(
      "nohup: ignoring input\nOverriding config with config/train_gpt2.py:\nbatch_size = 12\nblock_size = "
      "1024\ngradient_accumulation_steps = 5 * 8\nmax_iters = 600000\ntokens per iteration will be: 491,520\n"
      "found vocab_size = 50304 (inside data/openwebtext/meta.pkl)\nnumber of parameters: 123.59M\n"
      "wandb: Currently logged in as: someone (team). Use `wandb login --relogin` to force relogin\n"
      "step 0: train loss 10.9898, val loss 10.9891\n"
      "2023-03-22 09:30:39 iter 0: loss 10.9000, time 35392.33ms, mfu -100.00%\n" +
      // 6 x 123.59e6 + 12 L D T FLOPs of 61,440 tokens, over 312e12 and a time that is the same on every
      // line.
      lines(1, 6, "2023-03-22 09:3@:39 iter @0: loss 9.@883, time 1097.31ms, mfu 15.34%\n") +
      "step 100: train loss 4.0390, val loss 4.0427\nsaving checkpoint to out\n");
  EXPECT_EQ(run.steps_seen, 7);
  EXPECT_EQ(values(run, Field::mfu).size(), 6u);
  EXPECT_EQ(setting(run, Setting::accumulation_configured), 40);
  EXPECT_EQ(setting(run, Setting::tokens_per_step), 491520);
  EXPECT_EQ(read(lines(1, 6, "iter 163@: loss 4.0863, time 56@.94ms\n")).steps_seen, 6);
}

TEST(AsPrintedSpec, LlmCWithoutAPeakAndFromPython) {
  const RunRecord run = read(
      "| micro batch size B    | 4                                                  |\n"
      "| sequence length T     | 1024                                               |\n"
      "| total batch size      | 4096                                               |\n"
      "| device                | NVIDIA GeForce RTX 5090                            |\n"
      "| peak TFlops           | -1.0                                               |\n"
      "batch_size B=4 * seq_len T=1024 * num_processes=1 and total_batch_size=4096\n"
      "=> setting grad_accum_steps=1\nval loss 4.506450\n" +
      lines(1, 4,
            "step   6@/74 | loss 3.20893@ (+nanz)| norm 1.4800 (+nanz)| lr 3.00e-04 | 44.57 ms | -100.0% "
            "bf16 MFU | 91886 tok/s\n") +
      // The mean over the whole run, of which this is a piece.
      "generating:\n---\na step is taken 12/3 | times\n---\ntotal average iteration time: 44.571 ms\n");
  EXPECT_EQ(values(run, Field::step), (std::vector<double>{61.0, 62, 63, 64}));
  EXPECT_TRUE(values(run, Field::mfu).empty());
  EXPECT_FALSE(run[Setting::peak_flops]);
  const RunRecord python = read(lines(
      1, 5, "step    @/20 | train loss 10.8@0000 | norm 15.0001 | lr 3.00e-04 | (45.12 ms | 90778 tok/s)\n"));
  EXPECT_EQ(values(python, Field::seconds), std::vector<double>(5, 0.04512));
  EXPECT_EQ(values(python, Field::tokens_per_second), std::vector<double>(5, 90778));
}

TEST(AsPrintedSpec, HuggingFaceAmongProgressBars) {
  const std::string bar = "\r  4%|\xe2\x96\x8e         | @/36 [11:37<5:10:26,  1.87it/s]";
  const RunRecord run = read(
      "wandb: Tracking run with wandb version 0.17.0\n***** Running training *****\n  Num examples = "
      "1,000\n" +
      lines(1, 7,
            bar + "\r" + std::string(60, ' ') +
                "\r{'loss': 1.54@5, 'grad_norm': 0.54794949@, 'learning_rate': 2.9e-05, 'epoch': 0.@}\n" +
                bar) +
      "\n{'eval_loss': 1.5, 'eval_runtime': 3.1, 'epoch': 0.7}\n"
      "{'train_runtime': 2219.1234, 'train_samples_per_second': 1.474, 'train_loss': 0.7228, 'epoch': 3.0}\n"
      "100%|##########| 36/36 [11:37<00:00,  1.87it/s]\nwandb: Run history:\nwandb: train/loss\n");
  EXPECT_EQ(run.steps_seen, 7);
  EXPECT_EQ(values(run, Field::loss)[6], 1.5475);
  EXPECT_EQ(setting(run, Setting::total_seconds), 2219.1234);
  // Without its line's end a bar stands before the dictionary.
  EXPECT_EQ(read(lines(1, 6,
                       "  @%|#| @0/24128 [1:52:09<20:27:23,  3.33s/it]{'loss': 6.@645, 'learning_rate': "
                       "0.001, 'epoch': 0.0@}\n"))
                .steps_seen,
            6);
}

TEST(AsPrintedSpec, AxolotlAndLlamaFactoryPrintHuggingFacesDictionaries) {
  const RunRecord axolotl = read(
      lines(1, 6,
            "{'loss': 1.0@26, 'grad_norm': 1.1, 'learning_rate': 0.00014229432213209734, 'memory/max_active "
            "(GiB)': "
            "22.6@, 'tokens_per_second_per_gpu': 2345.6, 'epoch': 0.@}\n"
            "[2023-09-17 13:15:13,336] [INFO] [axolotl.utils.dataloader._len_est:264] [PID:11100] [RANK:0] "
            "packing_efficiency_estimate: 0.77 total_num_tokens per device: 26275\n"));
  EXPECT_EQ(values(axolotl, Field::loss),
            (std::vector<double>{1.0126, 1.0226, 1.0326, 1.0426, 1.0526, 1.0626}));
  const RunRecord factory =
      read(lines(1, 5,
                 "{'loss': 1.7@19, 'grad_norm': 0.547949492931366, 'learning_rate': 2.7037732088676582e-05, "
                 "'epoch': 0.@, 'num_input_tokens_seen': @0960}\n"));
  EXPECT_EQ(values(factory, Field::tokens_total)[2], 30960);
  const RunRecord texts = read(
      lines(1, 5, "{'loss': '1.0@', 'grad_norm': '1.23', 'learning_rate': '1.4e-05', 'epoch': '0.@'}\n") +
      "{'train_runtime': '2219', 'train_samples_per_second': '1.474', 'train_loss': '0.7228', 'epoch': "
      "'3'}\n");
  EXPECT_EQ(values(texts, Field::loss)[4], 1.05);
  EXPECT_EQ(setting(texts, Setting::total_seconds), 2219);
}

TEST(AsPrintedSpec, TrainerStateWithEvaluations) {
  std::string history;
  for (int i = 1; i <= 4; ++i) {
    const std::string at = std::to_string(i) + "0";
    history += std::string(i == 1 ? "" : ",") +
               "{\"epoch\": 0.1, \"grad_norm\": 1.1, \"learning_rate\": 1e-4, " + "\"loss\": 1." + at +
               ", \"step\": " + at + "},\n{\"epoch\": 0.1, \"eval_loss\": 2.0, \"step\": " + at + "}";
  }
  const RunRecord run =
      read("{\"epoch\": 1.0, \"global_step\": 40, \"log_history\": [" + history +
           ",{\"epoch\": 1.0, \"step\": 40, \"total_flos\": 1.2e17, \"train_loss\": 1.25, "
           "\"train_runtime\": 123.4}], \"max_steps\": 40, \"num_input_tokens_seen\": 0}\n");
  EXPECT_EQ(values(run, Field::step), (std::vector<double>{10.0, 20, 30, 40}));
  EXPECT_EQ(values(run, Field::loss)[3], 1.4);
}

TEST(AsPrintedSpec, KempnerForgeInColours) {
  const RunRecord run =
      read("\x1b[32mINFO\x1b[0m kempnerforge | Model: 8,030,261,248 parameters\n" +
           lines(1, 5,
                 "\x1b[2m2026-01-05 10:00:00\x1b[0m \x1b[32mINFO\x1b[0m kempnerforge.metrics | [step @] "
                 "loss=10.@ | lr=3.00e-04 | grad_norm=1.23 | tok/s=125k | mfu=41.2% | mem=37.2/80GB | "
                 "step_time=0.52s\n"));
  EXPECT_EQ(values(run, Field::tokens_per_second), std::vector<double>(5, 125000));
  EXPECT_EQ(setting(run, Setting::gpu_memory), 80 * 0x1p30);
  EXPECT_EQ(setting(run, Setting::parameters), 8030261248);
}

TEST(AsPrintedSpec, LlmqAmongItsValidations) {
  const RunRecord run =
      read(lines(0, 4,
                 "[T] step     @ [ 19.9%] | time:  1709 ms | norm   4.315545 | loss   3.28256@ | tps 38000 | "
                 "sol 42.9%\n") +
           "[V] step     4 [  0.0%] | time:   165 ms | eval   2.945187 | train  3.295834 | tps  148k\n");
  EXPECT_EQ(values(run, Field::step), (std::vector<double>{0.0, 1, 2, 3, 4}));
}

TEST(AsPrintedSpec, LightningsTableWithRowsOfItsValidation) {
  std::string table = "epoch,step,train_loss_epoch,train_loss_step,val_loss\n";
  for (int i = 0; i < 8; ++i)
    table += "0," + std::to_string(49 + 50 * i) + ",,0.66" + std::to_string(i) + ",\n";
  table += "0,399,0.61,,0.60\n0,,0.61,,\n1,449,,0.56,\n1,499,,0.55,\n";
  const RunRecord run = read(table, "step=step,loss=train_loss_step");
  EXPECT_EQ(run.steps_seen, 10);  // the validation's rows hold no training loss
  EXPECT_EQ(values(run, Field::step).back(), 499);
}

TEST(AsPrintedSpec, LlamaFactorysJsonLines) {
  const RunRecord run = read(
      lines(1, 6,
            "{\"current_steps\": @0, \"total_steps\": 100, \"loss\": 1.@, \"lr\": 5e-05, \"epoch\": 0.@, "
            "\"elapsed_time\": \"0:00:@0\", \"throughput\": 7654.32, \"total_tokens\": @0960}\n"
            "{\"current_steps\": @0, \"total_steps\": 100, \"eval_loss\": 1.@}\n"),
      "step=current_steps,loss=loss,learning_rate=lr,tokens_per_second=throughput");
  EXPECT_EQ(values(run, Field::step), (std::vector<double>{10.0, 20, 30, 40, 50, 60}));
  EXPECT_EQ(values(run, Field::tokens_per_second), std::vector<double>(6, 7654.32));
}

TEST(AsPrintedSpec, StepLinesOfASecondTrainerAreTold) {
  const std::string titan = lines(1, 9, "step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n"),
                    megatron = lines(
                        1, 5,
                        " iteration        @/     100 | consumed samples:          128 | elapsed time per "
                        "iteration (ms): 5000.0 | learning rate: 1.0E-04 | lm loss: 7.0@E+00 |\n");
  std::istringstream in("some words\n" + titan + "\n" + megatron);
  const RunRecord run = read_log(in, "log");
  EXPECT_EQ(run.format.name, "torchtitan");
  ASSERT_EQ(run.foreign_lines.size(), 1u);
  EXPECT_EQ(run.foreign_lines[0].format, "megatron");
  EXPECT_EQ(run.foreign_lines[0].count, 5);
  EXPECT_EQ(run.foreign_lines[0].line, 12);
}

}  // namespace
}  // namespace assay::spec::audit::as_printed_test
