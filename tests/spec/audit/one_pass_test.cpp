// labels: unit
// Micro-batches of all ranks that are more than the global batch, where no log line says how many passes a
// step has.
#include <gtest/gtest.h>

#include <algorithm>

#include "spec/audit/hypotheses.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::one_pass_test {
namespace {

using tests::read_text;

std::string number(int n) { return std::to_string(n); }

/// Megatron-LM's arguments and lines, without the one that says "constant 1".
std::string megatron(int micro, int ranks, int batch) {
  std::string out = "using world size: 16, data-parallel size: " + number(ranks) +
                    ", context-parallel size: 1, tensor-model-parallel size: 2, pipeline-model-parallel "
                    "size: 1\n------------------------ arguments ------------------------\n"
                    "  global_batch_size ............................... " +
                    number(batch) + "\n  micro_batch_size ................................ " + number(micro) +
                    "\n  seq_length ...................................... 4096\n"
                    "-------------------- end of arguments ---------------------\n";
  for (int i = 1; i <= 5; ++i)
    out += " iteration " + number(i) + "/ 100 | consumed samples: " + number(i * batch) +
           " | elapsed time per iteration (ms): 2000.0 | learning rate: 1.000000E-05 | global batch size: " +
           number(batch) + " | lm loss: 9.000000E+00 | loss scale: 1.0 | grad norm: 1.000 |\n";
  return out;
}

/// torchtitan's of versions before it accumulated.
std::string torchtitan(int micro, int ranks, int batch) {
  std::string out = "[titan] - Building 1-D device mesh with ['dp_shard'], [" + number(ranks) +
                    "]\n[titan] - Trainer is initialized with local batch size " + number(micro) +
                    ", global batch size " + number(batch) + ", sequence length 8192, total steps 100\n";
  for (int i = 1; i <= 5; ++i)
    out += "[titan] - step: " + number(i) +
           "  loss: 10.0000  grad_norm:  3.1000  memory: 42.00GiB(53.10%)  tps: 6,302\n";
  return out;
}

RunRecord table(int micro, int ranks, int batch) {
  std::string out = "step,loss\n";
  for (int i = 1; i <= 5; ++i) out += number(i) + ",9.5\n";
  return read_text(
      out, "micro=" + number(micro) + ",data_parallel=" + number(ranks) + ",sequences=" + number(batch),
      "step=step,loss=loss");
}

TEST(OnePassSpec, AStepHoldsAMicroBatchOfEveryRank) {
  for (const auto& [micro, ranks, batch] : {std::array{2, 8, 16}, std::array{2, 8, 64}, std::array{1, 8, 8}})
    for (const RunRecord& record : {read_text(megatron(micro, ranks, batch)),
                                    read_text(torchtitan(micro, ranks, batch)), table(micro, ranks, batch)})
      EXPECT_EQ(contradictions(record), "") << record.format.name << micro << " x " << ranks;
}

TEST(OnePassSpec, MoreThanTheGlobalBatchContradictsInEveryFormat) {
  for (const RunRecord& record :
       {read_text(megatron(4, 8, 16)), read_text(torchtitan(4, 8, 16)), table(4, 8, 16)}) {
    const Result result = judge("sequences", record);
    ASSERT_EQ(result.verdict, Verdict::contradicts) << record.format.name;
    EXPECT_EQ(result.printed, 16) << record.format.name;
    EXPECT_EQ(result.recomputed.low, 32) << record.format.name;
    const Audit audit = spec::audit::audit(record);
    std::vector<std::string> ids;
    for (const Reading& reading : audit.readings)
      for (const Change& change : reading.changes) {
        ids.push_back(change.id);
        ids.insert(ids.end(), change.alternative_ids.begin(), change.alternative_ids.end());
      }
    EXPECT_NE(std::find(ids.begin(), ids.end(), "micro_other"), ids.end()) << record.format.name;
  }
}

/// llm.c's table of 64 x 1,024 tokens on 8 GPUs, whose steps take 0.5 s.
std::string llmc(int batch, int passes, int done) {
  const auto row = [](const std::string& name, int value) {
    std::string out = "| " + name, number_of = "| " + number(value);
    out.resize(24, ' '), number_of.resize(53, ' ');
    return out + number_of + "|\n";
  };
  std::string out =
      row("micro batch size B", 64) + row("sequence length T", 1024) + row("total batch size", batch) +
      row("num_processes", 8) +
      "batch_size B=64 * seq_len T=1024 * num_processes=8 and total_batch_size=" + number(batch) +
      "\n=> setting grad_accum_steps=" + number(passes) + "\n";
  for (int i = 1; i <= 8; ++i)
    out += "step    " + number(i) +
           "/19560 | loss 10.900000 (+nanz)| norm 3.1000 (+nanz)| lr 6.00e-04 | 500.00 ms | -100.0% bf16 MFU "
           "| " +
           number(2 * done) + " tok/s\n";
  return out;
}

TEST(OnePassSpec, ABatchOfLlmcThatIsLessThanOnePassContradicts) {
  EXPECT_EQ(contradictions(read_text(llmc(524288, 1, 524288))), "");
  EXPECT_EQ(contradictions(read_text(llmc(1048576, 2, 1048576))), "");
  const RunRecord record = read_text(llmc(262144, 0, 524288));
  const Result result = judge("tokens_per_step", record);
  ASSERT_EQ(result.verdict, Verdict::contradicts);
  EXPECT_EQ(result.printed, 262144);
  EXPECT_EQ(result.recomputed.low, 524288);
  const Audit told = audit(record);
  ASSERT_EQ(told.readings.front().changes.size(), 1u);
  EXPECT_EQ(told.readings.front().changes.front().id, "batch_stated_other");
  EXPECT_TRUE(told.readings.front().unexplained.empty());
}

// The axis that splits the model may be on a line that is lost: the GPUs are then not the ranks.
TEST(OnePassSpec, RanksThatAreNotSaidAreNotCounted) {
  std::string lost = megatron(2, 2, 4);
  lost.replace(lost.find("data-parallel size"), 18, "another-axis: size");
  EXPECT_EQ(contradictions(read_text(lost)), "");
}

}  // namespace
}  // namespace assay::spec::audit::one_pass_test
