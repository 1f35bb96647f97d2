// labels: cli
// Nothing that the trainer writes contradicts itself, whatever the run was, and each identity of a record is
// held by one run at the least (that of the HFU, which a CPU has not, by spec_tests).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "spec/audit/identities.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/cli/train_program.hpp"

namespace assay::true_records_test {
namespace {

using spec::audit::Verdict;

class TrueRecords : public tests::TrainProgram {
 protected:
  /// Trains in folder(NAME), or goes on there.
  void trained(const std::string& name, const std::string& more, int code = 0) {
    const auto outcome = train(name, more);
    ASSERT_EQ(outcome.code, code) << name << ": " << outcome.messages;
  }
  void audited(const std::string& name) {
    std::ifstream in(folder(name) + "/run.jsonl");
    for (const spec::audit::RunRecord& record : spec::audit::read_logs(in, name)) {
      EXPECT_EQ(spec::audit::contradictions(record), "") << name;
      for (const spec::audit::IdentityRow& row : spec::audit::identities())
        if (spec::audit::judge(row.invariant.id, record).verdict == Verdict::holds)
          held_.insert(row.invariant.id);
    }
  }
  std::set<std::string_view> held_;
};

TEST_F(TrueRecords, HoldWhateverTheRunWas) {
  trained("plain", "train.steps=4 optimizer.clip=0");
  trained("validated",
          "data.grammar_samples=100 eval.share=0.1 eval.every=2 checkpoint.every=3 train.steps=8");
  trained("ranks", "train.steps=4 --ranks 2 parallel.data=shard checkpoint.every=2");
  trained("skips", "train.steps=12 optimizer.learning_rate=1e30 schedule.warmup_steps=0", 76);
  trained("skips",
          "train.steps=12 optimizer.learning_rate=1e30 schedule.warmup_steps=0 "
          "checkpoint.resume=auto train.on_non_finite=skip train.max_skipped=12");
  // A run that fails behind saves that it waited for.
  tests::shell("ASSAY_FAULT_DRILL='kind=error rank=0 step=5 phase=forward' " + tests::assay_path() +
                   " train checkpoint.every=2 checkpoint.asynchronous=off train.steps=8 run.directory=" +
                   folder("fails"),
               120);
  const std::string experts = folder("experts.toml");
  std::ofstream(experts)
      << "name = \"tiny-experts\"\nfamily = \"mixtral\"\nvocab = 256\nwidth = 32\nlayers = 2\n"
         "heads = 2\nkv_heads = 2\nhead_dim = 16\nffn = 48\ncontext = 128\n"
         "tied_embeddings = false\nqk_norm = false\nnorm_eps = 1e-5\nrope_theta = 10000.0\n\n"
         "[experts]\ncount = 4\nactive = 2\nwidth = 24\n";
  for (const char* capacity : {"0", "1"})
    trained("experts" + std::string(capacity),
            "data.paths=[] train.steps=4 batch.sequence_length=128 optimizer.learning_rate=3e-3 model.name=" +
                experts + " experts.capacity=" + capacity);
  const std::string mixed = mixed_recipe() + " sample.sentences=0 train.steps=12 checkpoint.every=6 ";
  trained("documents", mixed + "data.end_of_document=5 --ranks 2");
  trained("ramp", mixed + "batch.micro=1 batch.ramp=1:2,2:3");
  // As after a crash: what stands behind the checkpoint is done again.
  for (const char* name : {"ramp", "validated"}) {
    std::filesystem::remove_all(folder(name) + "/checkpoints/step_" +
                                (std::string(name) == "ramp" ? "00000012" : "00000008"));
    const auto resumed = tests::shell(tests::assay_path() + " resume " + folder(name), 120);
    ASSERT_EQ(resumed.code, 0) << resumed.messages;
  }
  for (const char* name :
       {"plain", "validated", "ranks", "skips", "fails", "experts0", "experts1", "documents", "ramp"})
    audited(name);
  EXPECT_EQ(held_.size() + 1, spec::audit::identities().size());
}

}  // namespace
}  // namespace assay::true_records_test
