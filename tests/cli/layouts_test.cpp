// labels: cli
// `assay train --ranks N parallel.data=...` as people run it: one switch, one run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "spec/model/model_spec.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/advice.hpp"
#include "tests/support/scratch.hpp"

namespace assay::layouts_test {
namespace {

namespace fs = std::filesystem;
using namespace spec::record;
using tests::shell;

class LayoutsProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }
  impl::cli::Outcome train(const std::string& name, const std::string& more) {
    return shell(command(name) + " " + more, 120);
  }
  std::string command(const std::string& name) const {
    return tests::assay_path() +
           " train compute.device=cpu compute.threads=1 compute.dtype=f64 batch.sequences=4 "
           "train.steps=4 sample.sentences=2 batch.sequence_length=32 run.directory=" +
           folder(name);
  }
  std::string folder(const std::string& name) const { return (scratch.path() / name).string(); }
  auto run_of(const std::string& name) const { return assemble(read_events(folder(name))); }

  tests::Scratch scratch;
};

TEST_F(LayoutsProgram, EveryLayoutIsTheSameRunAndSaysWhatItIs) {
  ASSERT_EQ(train("alone", "").code, 0);
  const auto alone = run_of("alone");
  for (const std::string layout : {"zero1", "shard"}) {
    const auto outcome = train(layout, "--ranks 2 parallel.check_replicas_every=2 parallel.data=" + layout);
    ASSERT_EQ(outcome.code, 0) << outcome.messages;
    const auto run = run_of(layout);
    ASSERT_TRUE(run.start.layout);
    EXPECT_EQ(run.start.layout->data, layout);
    EXPECT_EQ(run.start.layout->shard_ranks, 2);
    EXPECT_EQ(run.start.ranks.size(), 2u);
    ASSERT_EQ(run.steps.size(), alone.steps.size());
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      EXPECT_EQ(run.steps[i].sample_hash, alone.steps[i].sample_hash);
      EXPECT_NEAR(run.steps[i].loss, alone.steps[i].loss, 2e-11 * alone.steps[i].loss) << layout << " " << i;
      EXPECT_EQ(run.steps[i].weights_hash.has_value(), i % 2 == 1);
    }
    ASSERT_TRUE(run.samples && alone.samples);
    EXPECT_EQ(run.samples->samples, alone.samples->samples) << "the same weights write the same text";
    const auto audited = tests::assay({"audit", folder(layout)});
    EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
  }
}

/// Shards are gathered as codes for training, and as values for the text that is sampled. Scales are those of
/// a micro-batch, so it is the same size.
TEST_F(LayoutsProgram, InFp8ShardsAreTheSameRunToo) {
  const std::string fp8 = "batch.micro=1 compute.linear=fp8_tensor ";
  ASSERT_EQ(train("alone", fp8).code, 0);
  const auto outcome = train("shard", fp8 + "--ranks 2 parallel.data=shard");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  const auto alone = run_of("alone"), run = run_of("shard");
  ASSERT_EQ(run.steps.size(), alone.steps.size());
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    EXPECT_NEAR(run.steps[i].loss, alone.steps[i].loss, 2e-11 * alone.steps[i].loss) << i;
  ASSERT_TRUE(run.samples && alone.samples);
  EXPECT_EQ(run.samples->samples, alone.samples->samples) << "the same weights write the same text";
  ASSERT_TRUE(run.start.linear);
  EXPECT_NE(run.start.linear->find("gathered as codes"), std::string::npos) << *run.start.linear;
}

TEST_F(LayoutsProgram, ARunGoesOnInAnotherLayout) {
  ASSERT_EQ(train("whole", "").code, 0);
  ASSERT_EQ(train("moved", "--ranks 2 parallel.data=shard checkpoint.every=2").code, 0);
  fs::remove_all(folder("moved") + "/checkpoints/step_00000004");
  const auto outcome =
      train("moved", "--ranks 4 parallel.data=hybrid parallel.shard_ranks=2 checkpoint.resume=auto");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  const auto whole = run_of("whole"), moved = run_of("moved");
  ASSERT_EQ(moved.steps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(moved.steps[i].loss, whole.steps[i].loss, 2e-11 * whole.steps[i].loss) << i;
  ASSERT_TRUE(moved.start.layout);
  EXPECT_EQ(moved.start.layout->data, "hybrid");
  EXPECT_EQ(moved.start.layout->shard_ranks, 2);
}

TEST_F(LayoutsProgram, TensorRanksAreTheSameRunAndGoOnInAnyOtherNumber) {
  ASSERT_EQ(train("alone", "").code, 0);
  ASSERT_EQ(train("two", "--ranks 2 parallel.tensor=2 checkpoint.every=2").code, 0);
  fs::remove_all(folder("two") + "/checkpoints/step_00000004");
  const auto more = train("two", "--ranks 4 parallel.tensor=2 parallel.data=shard checkpoint.resume=auto");
  ASSERT_EQ(more.code, 0) << more.messages;
  const auto alone = run_of("alone"), two = run_of("two");
  ASSERT_EQ(two.steps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(two.steps[i].sample_hash, alone.steps[i].sample_hash);
    EXPECT_NEAR(two.steps[i].loss, alone.steps[i].loss, 2e-11 * alone.steps[i].loss) << i;
  }
  EXPECT_EQ(two.start.tensor_ranks, 2);
  EXPECT_EQ(two.start.batch.ranks, 2);
  ASSERT_TRUE(two.samples && alone.samples);
  EXPECT_EQ(two.samples->samples, alone.samples->samples);
  const auto audited = tests::assay({"audit", folder("two")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
}

TEST_F(LayoutsProgram, ExpertRanksAreTheSameRunAndGoOnInAnyOtherNumber) {
  const std::string file = folder("experts.toml"),
                    experts = "data.paths=[] optimizer.learning_rate=3e-3 model.name=" + file + " ";
  std::ofstream(file)
      << "name = \"tiny-experts\"\nfamily = \"mixtral\"\nvocab = 256\nwidth = 32\nlayers = 2\nheads = 2\n"
         "kv_heads = 2\nhead_dim = 16\nffn = 48\ncontext = 64\ntied_embeddings = false\nqk_norm = false\n"
         "norm_eps = 1e-5\nrope_theta = 10000.0\n\n[experts]\ncount = 4\nactive = 2\nwidth = 24\n";
  ASSERT_EQ(train("alone", experts).code, 0);
  ASSERT_EQ(train("two", experts + "--ranks 2 parallel.expert=2 checkpoint.every=2").code, 0);
  fs::remove_all(folder("two") + "/checkpoints/step_00000004");
  const auto more =
      train("two", experts + "--ranks 4 parallel.expert=4 parallel.data=shard checkpoint.resume=auto");
  ASSERT_EQ(more.code, 0) << more.messages;
  EXPECT_NE((more.output + more.messages).find("shard, experts over 4 ranks"), std::string::npos)
      << more.output;
  const auto alone = run_of("alone"), two = run_of("two");
  ASSERT_EQ(two.steps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(two.steps[i].sample_hash, alone.steps[i].sample_hash);
    EXPECT_NEAR(two.steps[i].loss, alone.steps[i].loss, 2e-11 * alone.steps[i].loss) << i;
    EXPECT_NEAR(*two.steps[i].balance_loss, *alone.steps[i].balance_loss,
                2e-11 * *alone.steps[i].balance_loss);
    EXPECT_EQ(two.steps[i].load_balance_worst, alone.steps[i].load_balance_worst);
  }
  EXPECT_EQ(two.start.expert_ranks, 4);
  ASSERT_TRUE(two.samples && alone.samples);
  EXPECT_EQ(two.samples->samples, alone.samples->samples);
  const auto audited = tests::assay({"audit", folder("two")});
  EXPECT_EQ(audited.code, 0) << audited.output << audited.messages;
  // Tensor ranks beside them, each of which routes whole sequences.
  const std::string tensor = experts + "--ranks 4 parallel.tensor=2 ";
  ASSERT_EQ(train("tensor", tensor + "parallel.expert=4 batch.micro=2 checkpoint.every=2").code, 0);
  fs::remove_all(folder("tensor") + "/checkpoints/step_00000004");
  const auto split = train("tensor", tensor + "batch.micro=2 parallel.data=zero1 checkpoint.resume=auto");
  ASSERT_EQ(split.code, 0) << split.messages;
  const auto both = run_of("tensor");
  ASSERT_EQ(both.steps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(both.steps[i].loss, alone.steps[i].loss, 2e-11 * alone.steps[i].loss) << i;
    EXPECT_NEAR(*both.steps[i].balance_loss, *alone.steps[i].balance_loss,
                2e-11 * *alone.steps[i].balance_loss);
    EXPECT_EQ(both.steps[i].load_balance_worst, alone.steps[i].load_balance_worst);
    EXPECT_EQ(both.steps[i].executed_flops, alone.steps[i].executed_flops);
  }
  EXPECT_EQ(both.samples->samples, alone.samples->samples);
  EXPECT_EQ(tests::assay({"audit", folder("tensor")}).code, 0);
  const auto halves = train("a", tensor + "batch.micro=1");
  EXPECT_EQ(halves.code, 2);
  EXPECT_NE(halves.messages.find("assay: error: parallel.tensor = 2 does not divide the 1 sequence of"),
            std::string::npos)
      << halves.messages;
  const auto refused = train("a", experts + "--ranks 4 parallel.expert=3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.messages.find("assay: error: parallel.expert = 3 does not divide the 4 experts"),
            std::string::npos)
      << refused.messages;
  EXPECT_NE(refused.messages.find("set parallel.expert to 2 or 4\n"), std::string::npos) << refused.messages;
}

TEST_F(LayoutsProgram, TensorRanksThatDoNotFitAreRefusedBeforeAnyStarts) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"--ranks 3 parallel.tensor=2", "start 2 or 4 ranks"},
      {"--ranks 3 parallel.tensor=3",
       "query heads; this run has 3 ranks (1 data-parallel rank of 3 tensor ranks): start 4 ranks with "
       "parallel.tensor=4\n"},
      {"--ranks 2 parallel.tensor=2 compute.linear=fp8_tensor", "leave one of the two out"},
      // batch.micro=0: one sequence of 7 tokens.
      {"--ranks 2 parallel.tensor=2 batch.sequences=1 batch.sequence_length=7 --dump-config",
       "does not divide the 7 tokens of a micro-batch"},
      {"train.steps=0", "out of range"}};
  const std::regex form("assay: error: (argument \"[^\"]*\": )?[a-z]+\\.[a-z_]+ = "),
      label("[a-z_]+_c[0-9]+: ");
  for (const auto& [words, reason] : refused) {
    const auto outcome = train("a", words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(std::regex_search(outcome.messages, form)) << outcome.messages;
    EXPECT_FALSE(std::regex_search(outcome.messages, label)) << outcome.messages;
    EXPECT_NE(outcome.messages.find(reason), std::string::npos) << outcome.messages;
    EXPECT_FALSE(fs::exists(folder("a")));
  }
  const auto batch = train("a", "batch.micro=3");
  EXPECT_EQ(batch.code, 2);
  EXPECT_NE(batch.messages.find("set batch.sequences to 3 or 6, or batch.micro to 2 or 4\n"),
            std::string::npos)
      << batch.messages;
}

TEST_F(LayoutsProgram, ALayoutThatDoesNotFitTheRanksIsRefusedBeforeTheyStart) {
  const auto outcome = train("a", "--ranks 4 parallel.data=hybrid parallel.shard_ranks=3");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.messages.find("assay: error: parallel.shard_ranks = 3 does not divide the 4 "),
            std::string::npos)
      << outcome.messages;
  EXPECT_NE(outcome.messages.find("set parallel.shard_ranks to 2 or 4\n"), std::string::npos)
      << outcome.messages;
  EXPECT_FALSE(fs::exists(folder("a")));
}

/// Whoever does what a refusal says trains: degrees that are wrong alone and together, and batches.
TEST_F(LayoutsProgram, EveryWayThatARefusalNamesTrains) {
  std::ofstream(folder("moe.toml")) << spec::to_toml([] {
    spec::ModelSpec model = spec::find_model("tiny-llama");
    model.name = "moe", model.family = spec::Family::qwen3_moe, model.layers = 1;
    model.experts = spec::Experts{.count = 6, .active = 2, .width = 16};
    return model;
  }());
  const std::string experts =
      "data.paths=[] optimizer.learning_rate=3e-3 model.name=" + folder("moe.toml") + " ";
  int number = 0;
  for (const auto& [ranks, words] : std::vector<std::pair<std::int64_t, std::string>>{
           {3, "parallel.tensor=2 parallel.data=hybrid parallel.shard_ranks=2"},
           {2, "parallel.tensor=4 parallel.data=hybrid parallel.shard_ranks=4 batch.sequences=2"},
           {4, experts + "parallel.expert=4 parallel.data=shard"},
           {3, experts + "parallel.tensor=2 parallel.expert=4 batch.sequences=6"},
           {2, "batch.sequences=3 batch.micro=2"}}) {
    const auto refused = train("refused", "--ranks " + std::to_string(ranks) + " " + words);
    ASSERT_EQ(refused.code, 2) << words << "\n" << refused.messages;
    const auto ways = tests::ways_of(refused.messages);
    EXPECT_FALSE(ways.empty()) << refused.messages;
    for (const tests::Way& way : ways) {
      std::string more;
      std::int64_t started = ranks;
      for (const auto& [name, value] : way)
        if (name == "ranks")
          started = value;
        else
          more += " " + name + "=" + std::to_string(value);
      if (started > 4) continue;  // more than this test starts
      const std::string name = "way" + std::to_string(++number);
      const auto trained =
          train(name, "--ranks " + std::to_string(started) + " " + words +
                          " train.steps=1 schedule.warmup_steps=0 schedule.decay_steps=0" + more);
      EXPECT_EQ(trained.code, 0) << refused.messages << more << "\n" << trained.messages;
    }
  }
  EXPECT_GE(number, 6);
}

TEST_F(LayoutsProgram, CpuRanksThatTorchrunStartsTrain) {
  ASSERT_EQ(train("a", "--ranks 2").code, 0);
  const auto outcome = shell(
      "port=$((20000 + $$ % 20000)); for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$port timeout 60 " +
          command("b") + " & pids=\"$pids $!\"; done; for p in $pids; do wait $p; echo -n \"exit $? \"; done",
      90);
  EXPECT_NE(outcome.output.find("exit 0 exit 0"), std::string::npos) << outcome.output << outcome.messages;
  EXPECT_EQ(run_of("a").end->final_loss, run_of("b").end->final_loss);
}

/// Two hosts, each with a launcher that knows its own ranks alone.
TEST_F(LayoutsProgram, LaunchersOfSeveralHostsTrainTogether) {
  ASSERT_EQ(train("a", "--ranks 3 batch.sequences=6").code, 0);
  const auto outcome = shell("port=$((20000 + $$ % 20000)); for n in 1 2; do timeout 60 " + command("b") +
                                 " batch.sequences=6 --ranks $n --of 3 --rendezvous localhost:$port > "
                                 "/dev/null & pids=\"$pids $!\"; done; "
                                 "for p in $pids; do wait $p; echo -n \"exit $? \"; done",
                             90);
  EXPECT_EQ(outcome.output, "exit 0 exit 0 ") << outcome.messages;
  EXPECT_EQ(run_of("a").end->final_loss, run_of("b").end->final_loss);
}

}  // namespace
}  // namespace assay::layouts_test
