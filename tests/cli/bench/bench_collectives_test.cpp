// labels: unit cli
// `assay bench ceilings --ranks`: its arguments, its tables and JSON, and the program itself where it is
// built: two ranks on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "impl/cli/bench/bench_print_collectives.hpp"
#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "spec/parallel/partition.hpp"
#include "spec/parallel/volume.hpp"
#include "spec/text/json.hpp"
#include "tests/cli/bench/bench_words.hpp"
#include "tests/cli/built_program.hpp"

namespace assay::bench_collectives_test {
namespace {

namespace fs = std::filesystem;
using namespace impl::bench;
using impl::cli::BenchPlan;
using spec::Collective;
using tests::expect_word;

TEST(BenchCollectivesCli, RanksAreOneNumberFromTwoAndOfCeilingsAlone) {
  EXPECT_EQ(tests::bench_plan({"ceilings", "--ranks", "4"}).ranks, 4);
  EXPECT_EQ(tests::bench_plan({"ceilings"}).ranks, 0);
  expect_word(tests::bench_refusal({"ceilings", "--ranks", "1"}), "between two ranks at least");
  expect_word(tests::bench_refusal({"ceilings", "--ranks", "1,2"}), "one number of ranks");
  expect_word(tests::bench_refusal({"ceilings", "--ranks", "two"}), "--ranks must be an integer >= 1");
  expect_word(tests::bench_refusal({"ceilings", "--ranks", "2", "--tune", "200"}), "tuned on one device");
  for (const char* what : {"ops", "step"})
    expect_word(tests::bench_refusal({what, "--ranks", "2"}),
                "`assay bench ceilings` and `assay bench scaling` take it");
}

CollectiveSubject four_gpus() {
  return {.device = "NVIDIA H200",
          .engine = "nccl",
          .ranks = 4,
          .hosts = 1,
          .model = "llama-1.36b",
          .dtype = "bf16",
          .repeats = 20,
          .max_ctas = "8"};
}

CollectiveRow block() {
  return {.collective = Collective::all_reduce,
          .size = "decoder block",
          .dtype = "f32",
          .bytes = 400'000'000,
          .seconds = 2e-3,
          .fastest = 1.9e-3};
}

TEST(BenchCollectivesCli, RowsByHand) {
  const std::string heading = impl::cli::collectives_heading(four_gpus());
  for (const char* word : {"collectives of 4 ranks on 1 host by nccl, each on NVIDIA H200",
                           "at the sizes of llama-1.36b in bf16, NCCL_MAX_CTAS=8\n", "the slowest rank's"})
    expect_word(heading, word);
  CollectiveSubject unlimited = four_gpus();
  unlimited.max_ctas = {};
  EXPECT_EQ(impl::cli::collectives_heading(unlimited).find("NCCL_MAX_CTAS"), std::string::npos);
  const std::string line = impl::cli::collective_line(block(), four_gpus());
  for (const char* word :
       {"all_reduce ", "f32 ", "decoder block", " 400,000,000 ", " 2.000 ", " 200 ", " 300\n"})
    expect_word(line, word);
  const OverlapRow slower{
      .gemm = "gate_up forward", .beside = block(), .alone_seconds = 1e-3, .beside_seconds = 1.25e-3};
  const std::string beside = impl::cli::overlap_line(slower, four_gpus());
  for (const char* word : {" 1.000 ", " 1.250 ", " 25.0 %", " 300\n"}) expect_word(beside, word);
  OverlapRow unknown = slower;
  unknown.beside_seconds = unknown.beside.seconds = 0;
  expect_word(impl::cli::overlap_line(unknown, four_gpus()), " -         -\n");
}

TEST(BenchCollectivesCli, JsonHoldsWhatTheTablesShowAndNullForWhatIsNotKnown) {
  OverlapRow row{
      .gemm = "gate_up forward", .beside = block(), .alone_seconds = 1e-3, .beside_seconds = 1.25e-3};
  OverlapRow unknown = row;
  unknown.beside_seconds = unknown.beside.seconds = 0;
  const auto tree = spec::parse_json(
      impl::cli::collectives_json(four_gpus(), {block()}, {row, unknown}, "no \"reason\""), "bench");
  EXPECT_EQ(tree.root().at("schema").text(), "assay.bench.collectives/1");
  EXPECT_EQ(tree.root().at("nccl_max_ctas").text(), "8");
  EXPECT_EQ(tree.root().at("overlap_left_out").text(), "no \"reason\"");
  EXPECT_DOUBLE_EQ(tree.root().at("rows")[0].at("bus_bytes_per_s").real(), 300e9);
  EXPECT_DOUBLE_EQ(tree.root().at("overlap")[0].at("slow_down").real(), 0.25);
  for (const char* member : {"slow_down", "bus_bytes_per_s", "seconds", "gemm_seconds_beside"})
    EXPECT_TRUE(tree.root().at("overlap")[1].at(member).is(spec::document::Kind::null)) << member;
}

class CollectivesProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
  }
  impl::cli::Outcome ceilings(const std::string& more, const std::string& environment = "") {
    return tests::shell(environment + " " + tests::assay_path() + " bench ceilings --ranks 2 " + more, 240);
  }
};

/// Elements of a whole buffer, by what the row says it is.
std::map<std::string, std::int64_t> elements_of(const spec::Partition& partition) {
  return {{"decoder block", partition.block_size(1)},
          {"embedding block", partition.block_size(0)},
          {"head block", partition.block_size(partition.inventory.blocks - 1)},
          {"all parameters", partition.inventory.flat_size}};
}

TEST_F(CollectivesProgram, TwoRanksOnTheCpuAtTheSizesOfTheLayouts) {
  const auto outcome = ceilings("--device cpu --model tiny-llama --repeats 3 --json --dtype bf16");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  const auto tree = spec::parse_json(outcome.output, "bench");
  const auto root = tree.root();
  EXPECT_EQ(root.at("schema").text(), "assay.bench.collectives/1");
  EXPECT_EQ(root.at("ranks").integer(), 2);
  EXPECT_EQ(root.at("hosts").integer(), 1);
  EXPECT_EQ(root.at("engine").text(), "gloo");
  EXPECT_EQ(root.at("device").text(), "CPU");
  EXPECT_EQ(root.at("overlap").size(), 0u);
  expect_word(root.at("overlap_left_out").text(), "measured on GPUs");
  const spec::Partition partition = spec::partition(spec::inventory(spec::find_model("tiny-llama")), 2);
  const auto elements = elements_of(partition);
  std::map<std::string, int> seen;
  const auto rows = root.at("rows");
  ASSERT_EQ(rows.size(), 3u * 5 + 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string collective = rows[i].at("collective").text(), size = rows[i].at("size").text();
    ++seen[collective], ++seen[size];
    const bool sums = collective == "all_reduce" || collective == "reduce_scatter";
    EXPECT_EQ(rows[i].at("dtype").text(), sums ? "f32" : "bf16");
    const std::int64_t bytes = rows[i].at("bytes").integer(), element = sums ? 4 : 2;
    const std::int64_t mebibytes = size == "1 MiB" ? 1 : 16;
    EXPECT_EQ(bytes, elements.contains(size) ? elements.at(size) * element : mebibytes << 20) << size;
    const double seconds = rows[i].at("seconds").real();
    EXPECT_GT(seconds, 0);
    EXPECT_LE(rows[i].at("fastest_seconds").real(), seconds);
    const double algorithm = static_cast<double>(bytes) / seconds,
                 bus = algorithm * (collective == "all_reduce" ? 1 : 0.5);
    EXPECT_NEAR(rows[i].at("bytes_per_s").real(), algorithm, 1e-12 * algorithm);
    EXPECT_NEAR(rows[i].at("bus_bytes_per_s").real(), bus, 1e-12 * bus);
  }
  for (const char* name : {"all_reduce", "reduce_scatter", "all_gather"}) EXPECT_EQ(seen[name], 5) << name;
  EXPECT_EQ(seen["all_to_all"], 2);
  for (const char* name : {"decoder block", "all parameters"}) EXPECT_EQ(seen[name], 3) << name;
  for (const char* name : {"1 MiB", "16 MiB"}) EXPECT_EQ(seen[name], 4) << name;
  // A step of zero1 scatters and gathers all parameters once: the sizes are those of its volume.
  const auto zero1 = spec::layout_of(spec::DataParallel::zero1, 2);
  const auto volume = spec::step_volume(spec::share(spec::find_model("tiny-llama"), {.layout = zero1}),
                                        {.gradient_bytes = 4, .weight_bytes = 2})
                          .shard;
  EXPECT_EQ(volume[Collective::reduce_scatter], Count(elements.at("all parameters") * 4));
  EXPECT_EQ(volume[Collective::all_gather], Count(elements.at("all parameters") * 2));
}

TEST_F(CollectivesProgram, OneRankPrintsForAll) {
  const auto outcome = ceilings("--device cpu --model tiny-qwen3 --repeats 1");
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3 + 17 + 1) << outcome.output;
  expect_word(outcome.output, "collectives of 2 ranks on 1 host by gloo, each on CPU");
  expect_word(outcome.output, "what collectives cost GEMMs is measured on GPUs");
}

TEST_F(CollectivesProgram, MoreRanksThanGpusAreRefusedOnceBeforeAnythingIsMeasured) {
  const auto outcome = ceilings("--device cuda --model tiny-llama", "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::usage)) << outcome.messages;
  EXPECT_EQ(outcome.output, "");
  expect_word(outcome.messages, "no usable NVIDIA GPU was found");
  EXPECT_EQ(outcome.messages.find("assay: error"), outcome.messages.rfind("assay: error"));
}

TEST_F(CollectivesProgram, TheLauncherAloneSaysHowManyRanksThereAre) {
  const auto outcome =
      tests::shell(tests::binary_dir() + "/bin/assay-train --bench --ranks=2 --device=cpu -- ceilings", 60);
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::usage));
  expect_word(outcome.messages, "here a launcher decides");
}

}  // namespace
}  // namespace assay::bench_collectives_test
