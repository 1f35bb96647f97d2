// labels: unit
// Pieces of logs as people have them: nohup headers, launchers' and wandb's lines, progress bars, colours,
// ranks that name themselves or do not, validations between the steps. What must be read of each, and that
// nothing of it contradicts. Lines follow what the trainers print in public issues; numbers are mostly made
// up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"

namespace assay::spec::audit::as_printed_test {
namespace {

RunRecord read(const std::string& log, const std::string& map = "") {
  std::istringstream in(log);
  ReadOptions options;
  options.map = map;
  RunRecord record = read_log(in, "log", options);
  EXPECT_EQ(contradictions(record), "");
  EXPECT_TRUE(record.foreign_lines.empty()) << record.foreign_lines.front().format;
  EXPECT_EQ(record.unread_lines, 0) << (record.unread_quotes.empty() ? "" : record.unread_quotes[0].text);
  return record;
}

/// The values of a field, step by step.
std::vector<double> values(const RunRecord& record, Field field) {
  std::vector<double> out;
  for (const Step& step : record.steps)
    if (step[field]) out.push_back(step[field]->value);
  return out;
}

double setting(const RunRecord& record, Setting name) { return record[name] ? record[name]->value : -1; }

/// `line` once for each step from `first` to `last`, with @ replaced by its number.
std::string lines(int first, int last, const std::string& line) {
  std::string out;
  for (int step = first; step <= last; ++step)
    for (const char c : line) out += c == '@' ? std::to_string(step) : std::string(1, c);
  return out;
}

const std::string torchrun =
    "nohup: ignoring input\n+ NGPU=8\n+ torchrun --nproc_per_node=8 -m torchtitan.train\n"
    "W0822 07:52:30.276310 1957 site-packages/torch/distributed/run.py:792] *********************\n";

TEST(AsPrintedSpec, TorchtitanWithItsHeaderColoursAndValidation) {
  const std::string line = "[rank0]:[titan] 2025-08-22 07:52:38,100 - root - INFO - ";
  const RunRecord run = read(
      torchrun + line + "Building 1-D device mesh with ['dp_shard'], [8]\n" + line +
      "Building llama3 8B with TransformerModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, "
      "vocab_size=128256, multiple_of=1024, max_seq_len=8192, eos_id=0)\n" +
      line + "CUDA capacity: NVIDIA H100 with 94.99GiB memory\n" + line +
      "\x1b[34mModel llama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m\n" + line +
      "Peak FLOPS used for computing MFU: 9.890e+14\n" + line +
      "Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation steps 1, "
      "sequence length 8192, total steps 1000 (warmup 200)\n" +
      line + "Training starts at step 1\n" + line +
      "\x1b[31mstep:  1  \x1b[32mloss: 12.2465  \x1b[38;2;180;60;0mgrad_norm:  4.5253  "
      "\x1b[38;2;54;234;195mmemory: 33.21GiB(34.95%)  \x1b[34mtps: 870  \x1b[36mtflops: 50.41  "
      "\x1b[35mmfu: 5.10%\x1b[39m\n" +
      line +
      "\x1b[31mstep: 10  \x1b[32mloss: 10.2391  \x1b[38;2;180;60;0mgrad_norm: 16.1413  "
      "\x1b[38;2;54;234;195mmemory: 44.84GiB(47.19%)  \x1b[34mtps: 5,615  \x1b[36mtflops: 325.20  "
      "\x1b[35mmfu: 32.88%\x1b[39m\n" +
      line + "validate step: 10  loss:  8.9  memory: 40.00GiB(42.10%)  tps: 9,000\n" + line +
      "Saving the checkpoint (or staging if async is enabled).\n");
  EXPECT_EQ(values(run, Field::loss), (std::vector<double>{12.2465, 10.2391}));
  EXPECT_EQ(values(run, Field::tokens_per_second), (std::vector<double>{870.0, 5615.0}));
  EXPECT_EQ(setting(run, Setting::data_parallel), 8);  // of the mesh, not of "[titan]"
  EXPECT_EQ(setting(run, Setting::gpus), 8);
  EXPECT_EQ(setting(run, Setting::sequences), 8);
  EXPECT_EQ(setting(run, Setting::accumulation), 1);
  EXPECT_EQ(setting(run, Setting::parameters), 8030261248);
  EXPECT_EQ(run.gpu, "NVIDIA H100");
}

TEST(AsPrintedSpec, TorchtitanOfSeveralRanksThatDoNotSayWhichTheyAre) {
  std::string log;
  for (int step = 1; step <= 5; ++step)
    for (int rank = 0; rank < 8; ++rank)
      log += "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  " + std::to_string(step) +
             "  loss:  7.6" + std::to_string(step) +
             "  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,0" + std::to_string(50 - rank % 2) +
             "  tflops: 314.69  mfu: 13.99%\n";
  EXPECT_EQ(read(log).steps_seen, 5);
  EXPECT_EQ(read(log).ranks, 8);
  EXPECT_EQ(judge("steps", read(log)).judged, 5);  // of one rank
  // Some ranks are a line ahead of others.
  const std::size_t of_step_4 = log.find("step:  4"), line = log.rfind('\n', of_step_4) + 1,
                    end = log.find('\n', line) + 1, before = log.rfind('\n', line - 2) + 1;
  const std::string ahead = log.substr(0, before) + log.substr(line, end - line) +
                            log.substr(before, line - before) + log.substr(end);
  EXPECT_EQ(judge("steps", read(ahead)).judged, 5);
  // One line twice is not a rank.
  const std::string one = lines(1, 5, "[titan] step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n"),
                    doubled = one + one.substr(one.find("[titan] step:  5"));
  std::istringstream in(doubled);
  EXPECT_NE(contradictions(read_log(in, "log")).find("steps: "), std::string::npos);
}

TEST(AsPrintedSpec, TorchtitanUnderSrunAndOfOldVersions) {
  const RunRecord srun = read(lines(1, 4,
                                    "0: [titan] step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n"
                                    "1: [titan] step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,049\n"));
  EXPECT_EQ(values(srun, Field::rank), (std::vector<double>{0.0, 1, 0, 1, 0, 1, 0, 1}));
  const RunRecord wps =
      read(lines(1, 4,
                 "[rank0]:2024-06-10 07:37:01,276 - root - INFO - \x1b[36mstep:  @  \x1b[32mloss:  9.@000  "
                 "\x1b[33mmemory: 34.21GiB(43.22%)  \x1b[34mwps: 5,9@5  \x1b[35mmfu: 34.6@%\x1b[39m\n"));
  EXPECT_EQ(values(wps, Field::tokens_per_second), (std::vector<double>{5915.0, 5925, 5935, 5945}));
}

TEST(AsPrintedSpec, TorchtitansPipelineRanksHaveNoLoss) {
  const RunRecord run =
      read(lines(1, 4,
                 "[rank0]:2025-03-05 07:37:01,276 - root - INFO - step:  @  loss: -1.0000  memory: "
                 "21.15GiB(22.27%)  tps: 3,215  mfu: 18.52%\n"));
  EXPECT_EQ(run.steps_seen, 4);
  EXPECT_TRUE(values(run, Field::loss).empty());
}

TEST(AsPrintedSpec, MegatronOldAndNew) {
  const RunRecord old = read(
      "time (ms) | forward-backward: 1000\n" +
      lines(
          1, 5,
          " iteration      12@/  250000 | consumed samples:       12@000 | elapsed time per iteration (ms): "
          "8654@.2 | learning rate: 9.150E-06 | global batch size:  1000 | lm loss: 2.50422@E+00 | loss "
          "scale: 1.0 | grad norm: 0.23@ | number of skipped iterations:   0 | number of nan iterations:   "
          "0 |\ntime (ms)\n    forward-backward ...............................: (86000.10, 86010.20)\n"));
  EXPECT_EQ(values(old, Field::step), (std::vector<double>{121.0, 122, 123, 124, 125}));
  EXPECT_NEAR(values(old, Field::seconds)[0], 86.5412, 1e-9);
  EXPECT_EQ(values(old, Field::sequences_total)[4], 125000);

  const RunRecord fresh = read(
      "using world size: 8, data-parallel size: 8, context-parallel size: 1, hierarchical context-parallel "
      "sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
      "------------------------ arguments ------------------------\n"
      "  seq_length ...................................... 4096\n"
      "  micro_batch_size ................................ 1\n"
      "-------------------- end of arguments ---------------------\n"
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 13000.1 | max allocated: 50000.2 | reserved: "
      "52000.0 | max reserved: 52000.0\n" +
      lines(1, 5,
            " [2025-03-01 10:11:1@.123456] iteration        @/    2000 | consumed samples:          @00 | "
            "elapsed time per iteration (ms): 99@.1 | throughput per GPU (TFLOP/s/GPU): 380.5 | learning "
            "rate: 3.000000E-07 | global batch size:   100 | lm loss: 1.09@000E+01 | mtp_1 loss: 1.1E+01 | "
            "loss scale: 1.0 | grad norm: 5.500 | num zeros: 0 | number of skipped iterations:   0 | number "
            "of nan iterations:   0 |\n") +
      " validation loss at iteration 5 | lm loss value: 1.0E+01 | lm loss PPL: 3.0E+04 |\n");
  EXPECT_EQ(setting(fresh, Setting::gpus), 8);
  EXPECT_EQ(setting(fresh, Setting::sequence_length), 4096);
  EXPECT_NEAR(values(fresh, Field::flops_rate)[0], 380.5e12, 1);
  EXPECT_NEAR(values(fresh, Field::loss)[1], 10.92, 1e-9);
}

TEST(AsPrintedSpec, GptNeoxBetweenDeepSpeedsLines) {
  const RunRecord run = read(
      lines(1, 5,
            " samples/sec: 7.799 | iteration       3@/   10000 | elapsed time per iteration (ms): 4103.@ | "
            "learning "
            "rate: 2.111E-06 | approx flops per GPU: 112.9TFLOPS | lm_loss: 1.11866@E+01 | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |\n"
            "[2023-07-25 21:03:21,037] [INFO] [logging.py:96:log_dist] [Rank 0] step=3@, skipped=0, "
            "lr=[2.17e-06, 2.17e-06], mom=[[0.9, 0.95], [0.9, 0.95]]\n"
            "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=3@/global_step=3@, "
            "RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=8.0, MemAllocated=59.65GB, "
            "MaxMemAllocated=63.31GB\n"));
  EXPECT_EQ(values(run, Field::step), (std::vector<double>{31.0, 32, 33, 34, 35}));
  EXPECT_NEAR(values(run, Field::flops_rate)[0], 112.9e12, 1);
}

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

/// 8 ranks x 11 steps, and as long a log as is thinned: a step that every rank prints is one step.
TEST(AsPrintedSpec, StepsOfSeveralRanksAreCountedOnce) {
  const auto log = [](int steps, const std::string& prefix, bool in_turn) {
    std::string out;
    const auto add = [&](int step, int rank) {
      out += (prefix.empty() ? "" : prefix + std::to_string(rank) + "]:") + "step:  " + std::to_string(step) +
             "  loss:  7." + std::to_string(600 + step % 300) +
             "  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,0" + std::to_string(50 - rank % 2) +
             "  tflops: 314.69  mfu: 13.99%\n";
    };
    // The last rank is a line ahead, but for the first.
    for (int step = 1; step <= steps; ++step)
      for (int rank = 0; rank < 8; ++rank)
        if (in_turn || rank < 7)
          add(step, rank);
        else
          for (int ahead = step == 1 ? 1 : step + 1; ahead <= std::min(step + 1, steps); ++ahead)
            add(ahead, rank);
    return out;
  };
  for (const char* prefix : {"", "[rank"})
    for (const bool in_turn : {true, false})
      for (const int steps : {11, 2000}) {
        const RunRecord run = read(log(steps, prefix, in_turn));
        EXPECT_EQ(run.steps_of_rank, steps) << prefix << in_turn;
        EXPECT_EQ(run.ranks, 8) << prefix << in_turn << steps;
        EXPECT_EQ(run.steps_seen, *prefix ? 8 * steps : steps) << in_turn;
      }
  EXPECT_EQ(read(lines(1, 9, "step:  @  loss:  7.6@  grad_norm: 26.6250  tps: 10,050\n")).ranks, 1);
}

TEST(AsPrintedSpec, MegatronsStampsAreItsClock) {
  const auto log = [](double each, const std::string& fraction) {
    std::string out;
    for (int i = 1; i <= 30; ++i) {
      const int second = static_cast<int>(i * each);
      char line[300];
      std::snprintf(
          line, sizeof line,
          " [2025-11-15 %02d:%02d:%02d%s] iteration %8d/     100 | consumed samples: %8d | elapsed time per "
          "iteration (ms): 4000.0 | learning rate: 1.0E-04 | global batch size:   128 | lm loss: %.6E | "
          "number of skipped iterations:   0 |\n",
          12 + second / 3600, second / 60 % 60, second % 60, fraction.c_str(), i, 128 * i, 7 - 0.01 * i);
      out += line;
    }
    return out;
  };
  const RunRecord run = read(log(4, ""));
  ASSERT_TRUE(run.steps[1][Field::elapsed] && run.steps[2][Field::elapsed]);
  EXPECT_EQ(run.steps[2][Field::elapsed]->value - run.steps[1][Field::elapsed]->value, 4);
  EXPECT_EQ(run.steps[1][Field::elapsed]->high - run.steps[1][Field::elapsed]->low, 0.5)
      << "cut off behind the second";
  EXPECT_EQ(judge("wall_clock", run).verdict, Verdict::holds);
  const RunRecord exact = read(log(4, ".789"));
  EXPECT_DOUBLE_EQ(exact.steps[2][Field::elapsed]->value, run.steps[2][Field::elapsed]->value + 0.789);
  EXPECT_NEAR(exact.steps[1][Field::elapsed]->high - exact.steps[1][Field::elapsed]->low, 5e-4, 1e-6);
  EXPECT_EQ(judge("wall_clock", exact).verdict, Verdict::holds);
  std::istringstream slow(log(8, ""));
  EXPECT_EQ(judge("wall_clock", read_log(slow, "log")).verdict, Verdict::contradicts);
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

TEST(AsPrintedSpec, ConsolesThatAreNotReadAreNamed) {
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
    }
  }
}

/// A document inside a quotation, and a summary without its run: what is missing is said.
TEST(AsPrintedSpec, PartsOfKnownLogsAreNamedInTheRefusal) {
  const std::pair<const char*, const char*> logs[] = {
      {"line 3 is of a JSON document that other text stands around",
       "> {\n>   \"global_step\": 2,\n>   \"log_history\": [\n>     {\"loss\": 2.5, \"step\": 1}\n>   ]\n> "
       "}\n"},
      {"line 4 is of a JSON document that other text stands around",
       "my state:\n```json\n{\n  \"training_iterations\": []\n}\n```\n"},
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

TEST(AsPrintedSpec, OthersAreRefusedWithWhatToDo) {
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
}  // namespace assay::spec::audit::as_printed_test
