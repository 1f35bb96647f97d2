// labels: unit property
#include "impl/run/start/memory_limits.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cctype>
#include <new>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "tests/support/paths.hpp"

namespace assay::impl::run::memory_limits_test {
namespace {

constexpr std::int64_t host = std::int64_t{8} << 30;

spec::RunConfig demo(std::int64_t sequences, std::int64_t micro, std::int64_t prefetch = 2) {
  spec::RunConfig config;
  config.sequences = sequences, config.micro = micro, config.prefetch = prefetch;
  return config;
}

/// What is said to `config` on a machine of that memory; "fits" where nothing is.
std::string refusal(const spec::RunConfig& config, const MachineMemory& machine, at::Device device = at::kCPU,
                    std::int64_t ranks = 1) {
  const spec::Batch batch = spec::batch_of(config.sequences, config.micro, ranks);
  try {
    const spec::ModelSpec model = spec::find_model(config.model);
    refuse_what_cannot_fit(memory_plan(config, model, batch, device), config, model, batch, machine);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "fits";
}
std::string refusal(const spec::RunConfig& config) { return refusal(config, {.device = host, .host = host}); }

TEST(MemoryLimitsImpl, TheDemoFitsAndAnEndlessBatchDoesNot) {
  EXPECT_EQ(refusal(demo(32, 0)), "fits");
  EXPECT_EQ(refusal(demo(100'000, 8)), "fits");
  // 1e9 x 128 tokens x 16 bytes x 3 steps
  EXPECT_NE(refusal(demo(1'000'000'000, 1)).find("5.59 TiB"), std::string::npos)
      << refusal(demo(1'000'000'000, 1));
  EXPECT_NE(refusal(demo(1'000'000'000, 0)).find("batch.sequences"), std::string::npos);
  EXPECT_NE(refusal(demo(32, 0, 1'000'000)).find("data.prefetch"), std::string::npos);
  EXPECT_NE(refusal(demo(100'000, 0)).find("batch.micro"), std::string::npos) << refusal(demo(100'000, 0));
}

TEST(MemoryLimitsImpl, APlanIsOfTheLargestStageAndLeavesOutThoseOfNoWholeMicroBatch) {
  const auto peak = [](const spec::RunConfig& config) {
    const spec::Batch batch = spec::batch_of(config.sequences, config.micro, 1);
    return memory_plan(config, spec::find_model(config.model), batch, at::kCPU).peak;
  };
  const spec::RunConfig one = demo(8, 8), several = demo(16, 8);
  const auto largest = std::max(peak(one), peak(several));
  spec::RunConfig ramped = several;
  ramped.ramp = {{8, 3}};
  EXPECT_EQ(peak(ramped), largest);
  ramped = one, ramped.ramp = {{16, 3}};
  EXPECT_EQ(peak(ramped), largest);
  ramped.ramp = {{4, 3}, {12, 1}};
  EXPECT_EQ(peak(ramped), peak(one));
}

TEST(MemoryLimitsImpl, AModelWhoseStateAloneIsTooLargeIsToldSo) {
  spec::RunConfig config = demo(8, 8);
  config.model = "llama3-8b", config.dtype = Dtype::bf16;
  const std::string text = refusal(config);
  // 8,030,261,248 x 18 bytes, and rope's tables
  EXPECT_NE(text.find("135 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("smaller model"), std::string::npos) << text;
}

TEST(MemoryLimitsImpl, WhereAGpuIsTooSmallTheCpuIsOfferedIfItsMemoryHoldsTheModel) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = demo(8, 8);
  config.model = "llama3-8b", config.dtype = Dtype::bf16;
  EXPECT_NE(refusal(config, {.device = host, .host = host * 32}, gpu).find("compute.device=cpu"),
            std::string::npos);
  EXPECT_EQ(refusal(config, {.device = host, .host = host}, gpu).find("compute.device=cpu"),
            std::string::npos);
  EXPECT_EQ(refusal(config, {.device = host, .host = host}).find("compute.device=cpu"), std::string::npos);
}

TEST(MemoryLimitsImpl, MemoryThatRanOutIsTheUsersToMend) {
  const spec::Batch batch = spec::batch_of(8, 4, 1);
  const at::Device gpu(at::kCUDA, 0);
  const auto on_gpu = out_of_memory(std::bad_alloc(), batch, gpu),
             on_cpu = out_of_memory(std::bad_alloc(), batch, at::kCPU);
  ASSERT_TRUE(on_gpu && on_cpu);
  EXPECT_EQ(on_gpu->code(), ExitCode::usage);
  EXPECT_NE(std::string(on_gpu->what()).find("the GPU's memory ran out with 4 sequences per micro-batch"),
            std::string::npos)
      << on_gpu->what();
  EXPECT_NE(std::string(on_gpu->what()).find("compute.device=cpu"), std::string::npos);
  EXPECT_EQ(std::string(on_cpu->what()).find("compute.device=cpu"), std::string::npos);
  EXPECT_FALSE(out_of_memory(std::runtime_error("another"), batch, gpu));
  const auto of_several = out_of_memory(std::bad_alloc(), batch, gpu, [] { return "parallel.tensor=2"; });
  EXPECT_NE(std::string(of_several->what())
                .find("; of other layouts of these ranks less is planned: parallel.tensor=2"),
            std::string::npos);
}

TEST(MemoryLimitsImpl, AGpuIsJudgedByItsOwnMemory) {
  const at::Device gpu(at::kCUDA, 0);
  const spec::RunConfig config = demo(64, 64);
  EXPECT_EQ(refusal(config, {.device = host, .host = host}, gpu), "fits");
  EXPECT_NE(refusal(config, {.device = host / 64, .host = host}, gpu).find("this GPU has 128 MiB"),
            std::string::npos)
      << refusal(config, {.device = host / 64, .host = host}, gpu);
  EXPECT_EQ(refusal(config, {.device = host, .host = host / 512}, gpu), "fits");  // data are the host's
}

/// 1.55 GiB in 1,000 MB: the system would kill it in the first step.
TEST(MemoryLimitsImpl, ThePlanThatACgroupsLimitDoesNotHoldIsRefusedByThatName) {
  const MachineMemory limited{.device = 64'000'000, .host = 64'000'000, .limit = "/sys/fs/cgroup/memory.max"};
  EXPECT_EQ(refusal(demo(64, 64)), "fits");
  const std::string text = refusal(demo(64, 64), limited);
  EXPECT_NE(
      text.find(", the memory limit of this process's cgroup, /sys/fs/cgroup/memory.max, leaves 61.0 MiB"),
      std::string::npos)
      << text;
  EXPECT_NE(refusal(demo(1'000'000'000, 1), limited).find("/sys/fs/cgroup/memory.max, leaves 61.0 MiB"),
            std::string::npos);
}

TEST(MemoryLimitsImpl, LargeModelsOnOneH200AreJudgedAsMeasured) {
  const at::Device gpu(at::kCUDA, 0);
  const MachineMemory h200{.device = 150'100'000'000, .host = host * 16};
  const auto of = [](const char* settings) {
    return spec::load(tests::source_dir() + "/recipes/h200/llama-1.36b.toml", {settings});
  };
  EXPECT_EQ(refusal(of("memory.recompute=none"), h200, gpu), "fits");
  const std::string text = refusal(of("batch.micro=96"), h200, gpu);
  EXPECT_NE(text.find("batch.micro=48 ("), std::string::npos) << text;
  EXPECT_NE(text.find("memory.recompute=block ("), std::string::npos) << text;
}

/// Settings named in an error, "batch.micro=8".
std::vector<std::string> named(const std::string& text) {
  std::vector<std::string> settings;
  for (const std::string key : {"batch.micro=", "memory.recompute="})
    for (std::size_t at = text.find("set "); (at = text.find(key, at)) != std::string::npos; ++at)
      settings.push_back(text.substr(at, text.find_first_of(" ,;", at) - at));
  return settings;
}

RC_GTEST_PROP(MemoryLimitsImpl, WhatARefusalNamesIsNotRefused, ()) {
  spec::RunConfig config = demo(64, *rc::gen::element(64, 32, 16), 0);
  config.sample_sentences = 0;
  config.recompute = *rc::gen::elementOf(spec::all_recomputes);
  const MachineMemory machine{.device = *rc::gen::inRange<std::int64_t>(20'000'000, 400'000'000),
                              .host = host};
  const at::Device gpu(at::kCUDA, 0);
  std::string text = refusal(config, machine, gpu);
  if (text == "fits") return;
  text = text.substr(0, text.find("; it fits on "));  // other numbers of ranks
  const auto settings = named(text);
  RC_LOG() << text << "\n";
  if (settings.empty()) {
    RC_ASSERT(text.find("no batch.micro fits") != std::string::npos);
    config.micro = 1, config.recompute = spec::Recompute::block;
    RC_ASSERT(refusal(config, machine, gpu) != "fits");
    return;
  }
  const bool together = text.find("neither is enough alone") != std::string::npos;
  std::vector<spec::RunConfig> tried(together ? 1 : settings.size(), config);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::size_t equals = settings[i].find('=');
    const std::string value = settings[i].substr(equals + 1);
    const spec::Key& key = *spec::find_key(settings[i].substr(0, equals));
    key.set(tried[together ? 0 : i],
            key.type == spec::KeyType::integer ? spec::Value(std::int64_t{std::stoll(value)}) : value);
  }
  for (const spec::RunConfig& each : tried) RC_ASSERT(refusal(each, machine, gpu) == "fits");
}

TEST(MemoryLimitsImpl, SentencesSampledTogetherAreToldApartFromTheStep) {
  spec::RunConfig config = demo(1, 1, 0);
  config.sample_sentences = 1'000'000;
  const std::string text = refusal(config);
  EXPECT_NE(text.find("lower sample.sentences"), std::string::npos) << text;
}

TEST(MemoryLimitsImpl, AValidationThatDoesNotFitIsToldApartFromTheStep) {
  spec::RunConfig config = demo(1, 1, 0);
  config.sample_sentences = 0;
  const spec::ModelSpec model = spec::find_model(config.model);
  const auto plan_of = [&] { return memory_plan(config, model, spec::batch_of(1, 1, 1), at::kCPU, {}); };
  const std::int64_t steps = plan_of().peak.to_int64();
  config.eval_share = 0.1;
  const std::int64_t machine = 2 * steps;
  ASSERT_GT(plan_of().peak.to_int64(), machine) << "32 sequences beside one";
  const std::string text = refusal(config, {.device = machine, .host = machine});
  EXPECT_NE(text.find("a forward pass of validation, of 32 sequences of 128 tokens"), std::string::npos)
      << text;
  EXPECT_NE(text.find("set eval.sequences below 32"), std::string::npos) << text;
}

/// llama3-8b takes 18 bytes a parameter replicated, 6 and 12/4 with zero1, 18/4 and two whole blocks with
/// shard.
spec::RunConfig llama_on_four() {
  spec::RunConfig config = demo(8, 2);
  config.model = "llama3-8b", config.dtype = Dtype::bf16, config.sample_sentences = 0;
  return config;
}
constexpr std::int64_t gigabyte = 1'000'000'000;

TEST(MemoryLimitsImpl, WhereALayoutDoesNotFitThoseThatDoAreNamed) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = llama_on_four();
  MachineMemory machine{.device = 100 * gigabyte, .host = host, .ranks = 4, .ranks_per_host = 4};
  const std::string state = refusal(config, machine, gpu, 4);
  EXPECT_NE(state.find("on each of 4 ranks with parallel.data=replicate"), std::string::npos) << state;
  EXPECT_NE(state.find("set parallel.data=zero1 ("), std::string::npos) << state;
  EXPECT_NE(state.find(" or parallel.data=shard ("), std::string::npos) << state;
  EXPECT_EQ(state.find("parallel.data=hybrid"), std::string::npos) << state;
  for (const auto data : {spec::DataParallel::zero1, spec::DataParallel::shard}) {
    config.data_parallel = data;
    EXPECT_EQ(refusal(config, machine, gpu, 4), "fits");
  }
  config.data_parallel = spec::DataParallel::replicate;
  machine.device = 10 * gigabyte;
  EXPECT_NE(refusal(config, machine, gpu, 4)
                .find("no other layout of these ranks fits, either: it fits on 16 GPUs "
                      "with parallel.tensor=16 ("),
            std::string::npos)
      << refusal(config, machine, gpu, 4);
}

/// Settings behind `before`, "parallel.tensor=2 batch.micro=4", up to their bytes.
std::vector<std::string> settings_behind(const std::string& text, const std::string& before) {
  std::vector<std::string> settings;
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return settings;
  std::istringstream words(text.substr(at + before.size()));
  for (std::string word; words >> word && word[0] != '(';) settings.push_back(word);
  return settings;
}

TEST(MemoryLimitsImpl, TensorRanksAreOfferedWhereTheModelAllowsThemAndThePlanFits) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = llama_on_four();
  config.sequences = 4, config.micro = 1, config.sequence_length = 8192;
  config.data_parallel = spec::DataParallel::shard;
  const spec::ModelSpec model = spec::find_model(config.model);
  // A micro-batch of one sequence is too much, whatever is computed again.
  const auto block = [&] {
    spec::RunConfig other = config;
    other.recompute = spec::Recompute::block;
    return memory_plan(other, model, spec::batch_of(4, 1, 4), gpu).peak.to_int64();
  }();
  MachineMemory machine{.device = block - 1, .host = host, .ranks = 4, .ranks_per_host = 4};
  const std::string text = refusal(config, machine, gpu, 4);
  const auto offered = settings_behind(text, "other layouts of these ranks that fit: ");
  ASSERT_FALSE(offered.empty()) << text;
  EXPECT_EQ(offered[0], "parallel.tensor=2") << text;
  std::vector<std::string> all = {"batch.sequences=4",   "batch.micro=1",        "batch.sequence_length=8192",
                                  "parallel.data=shard", "model.name=llama3-8b", "compute.dtype=bf16",
                                  "sample.sentences=0"};
  all.insert(all.end(), offered.begin(), offered.end());
  EXPECT_EQ(refusal(spec::load("", all), machine, gpu, 2), "fits") << text;
  // 8 KV heads and an odd inner width: no degree goes.
  spec::ModelSpec odd = model;
  odd.ffn = 14335;
  const auto plan = memory_plan(config, odd, spec::batch_of(4, 1, 4), gpu);
  EXPECT_EQ(divisions_with_less(plan, config, odd, machine).find("parallel.tensor"), std::string::npos);
  EXPECT_NE(
      divisions_with_less(memory_plan(config, model, spec::batch_of(4, 1, 4), gpu), config, model, machine)
          .find("parallel.tensor=2"),
      std::string::npos);
}

/// Each tensor rank routes whole sequences to experts: of a micro-batch of one there is nothing to split.
TEST(MemoryLimitsImpl, TensorRanksAreOfferedBesideExpertsWhereTheyDivideAMicroBatch) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = llama_on_four();
  config.model = "moe-4b", config.sequences = 16, config.data_parallel = spec::DataParallel::shard;
  config.sequence_length = 8192;
  const spec::ModelSpec model = spec::find_model(config.model);
  const MachineMemory machine{.device = 80 * gigabyte, .host = host, .ranks = 4, .ranks_per_host = 4};
  const auto offered = [&](std::int64_t micro) {
    config.micro = micro;
    return divisions_with_less(memory_plan(config, model, spec::batch_of(16, micro, 4), gpu), config, model,
                               machine);
  };
  EXPECT_EQ(offered(1).find("parallel.tensor"), std::string::npos) << offered(1);
  EXPECT_NE(offered(2).find("parallel.tensor=2"), std::string::npos) << offered(2);
  EXPECT_EQ(offered(2).find("parallel.tensor=4"), std::string::npos) << offered(2);
}

TEST(MemoryLimitsImpl, OneGpuThatIsTooSmallNamesHowManyAreEnough) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = llama_on_four();
  const MachineMemory machine{.device = 80 * gigabyte, .host = host};
  const std::string text = refusal(config, machine, gpu, 1);
  // 18 bytes of each of 8.03e9 parameters: 145 GB.
  EXPECT_NE(text.find("; it fits on 2 GPUs with parallel.data=shard ("), std::string::npos) << text;
  EXPECT_NE(text.find(" or parallel.tensor=2 ("), std::string::npos) << text;
  config.sequences = 1, config.micro = 1;  // no sequence for another data-parallel rank
  const std::string alone = refusal(config, machine, gpu, 1);
  EXPECT_NE(alone.find("; it fits on 2 GPUs with parallel.tensor=2 ("), std::string::npos) << alone;
}

TEST(MemoryLimitsImpl, APassThatDoesNotFitIsToldOfOtherLayoutsToo) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = llama_on_four();
  config.sequences = 16, config.data_parallel = spec::DataParallel::zero1;  // on two hosts of four
  const auto plan = memory_plan(config, spec::find_model(config.model), spec::batch_of(16, 2, 8), gpu);
  const MachineMemory machine{
      .device = plan.peak.to_int64() - 1, .host = host, .ranks = 4, .ranks_per_host = 4};
  const std::string text = refusal(config, machine, gpu, 8);
  EXPECT_NE(text.find("batch.micro=1 ("), std::string::npos) << text;
  EXPECT_NE(text.find("other layouts of these ranks that fit: parallel.data=hybrid parallel.shard_ranks=4 ("),
            std::string::npos)
      << text;
}

TEST(MemoryLimitsImpl, TensorRanksAreRanksAndAShardGroupIsOfDataRanks) {
  const at::Device gpu(at::kCUDA, 0);
  spec::RunConfig config = llama_on_four();
  config.sequences = 16, config.data_parallel = spec::DataParallel::zero1;
  config.tensor_ranks = 2;  // 8 data ranks of 2, on two hosts of 8 ranks
  const auto plan = memory_plan(config, spec::find_model(config.model), spec::batch_of(16, 2, 8), gpu);
  MachineMemory machine{.device = plan.peak.to_int64() - 1, .host = host, .ranks = 8, .ranks_per_host = 8};
  const std::string text = refusal(config, machine, gpu, 8);
  EXPECT_NE(text.find("on each of 16 ranks (8 data-parallel ranks of 2 tensor ranks) with "
                      "parallel.data=zero1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("parallel.data=hybrid parallel.shard_ranks=4 ("), std::string::npos) << text;
  machine.ranks_per_host = 5;  // no whole number of data ranks
  EXPECT_EQ(refusal(config, machine, gpu, 8).find("hybrid"), std::string::npos);
  config.sequences = 2;
  EXPECT_NE(
      refusal(config, machine, gpu, 1).find("on each of 2 ranks (1 data-parallel rank of 2 tensor ranks)"),
      std::string::npos)
      << refusal(config, machine, gpu, 1);
}

TEST(MemoryLimitsImpl, RanksOfAHostHaveItsMemoryBetweenThem) {
  spec::RunConfig config = demo(64, 16, 0);
  const auto plan = memory_plan(config, spec::find_model(config.model), spec::batch_of(64, 16, 4), at::kCPU);
  const auto ahead = static_cast<std::int64_t>(bytes_read_ahead(config, spec::batch_of(64, 16, 4)));
  const std::int64_t needed = plan.peak.to_int64() + ahead;
  const auto of = [&](std::int64_t memory, std::int64_t ranks) {
    return refusal(config, {.device = memory, .host = memory, .ranks = ranks}, at::kCPU, 4);
  };
  EXPECT_EQ(of(needed, 1), "fits");
  EXPECT_EQ(of(4 * needed, 4), "fits");
  EXPECT_NE(of(4 * needed - 4, 4).find("for its 4 ranks; "), std::string::npos) << of(4 * needed - 4, 4);
  // 1e6 sequences a rank of 128 tokens, 16 bytes each: 2 GB on a GPU's host, too.
  config = demo(4'000'000, 1, 0);
  const at::Device gpu(at::kCUDA, 0);
  const auto on_gpus = [&](std::int64_t ranks) {
    return refusal(config, {.device = 80 * gigabyte, .host = 4 * gigabyte, .ranks = ranks}, gpu, 4);
  };
  EXPECT_EQ(on_gpus(1), "fits");
  EXPECT_NE(on_gpus(4).find("for its 4 ranks; lower batch.sequences"), std::string::npos) << on_gpus(4);
}

TEST(MemoryLimitsImpl, TokensReadAheadAreOfThisRank) {
  const spec::RunConfig config = demo(64, 8, 0);
  EXPECT_EQ(bytes_read_ahead(config, spec::batch_of(64, 8, 1)), 64.0 * 128 * 16);
  EXPECT_EQ(bytes_read_ahead(config, spec::batch_of(64, 8, 4)), 16.0 * 128 * 16);
}

TEST(MemoryLimitsImpl, TheRecordsEventAddsUp) {
  const spec::RunConfig config = demo(8, 4);
  const auto plan = memory_plan(config, spec::find_model(config.model), spec::batch_of(8, 4, 1), at::kCPU);
  const auto event = memory_event(plan, 1, at::kCPU, host, 0);
  std::int64_t sum = 0, state = 0;
  for (const auto& tensors : event.tensors) {
    sum += tensors.bytes;
    if (tensors.purpose == "state") state += tensors.bytes;
  }
  EXPECT_EQ(sum, event.planned_bytes);
  EXPECT_EQ(state, event.state_bytes);
  EXPECT_FALSE(event.measured_bytes);
  EXPECT_EQ(memory_event(plan, 1, at::Device(at::kCUDA, 0), host, 5).measured_bytes, 5);
}

/// What a refusal names passes every other check of a run, and fits: layouts beside kept FP8 twins, which
/// shards have none of, micro-batches beside a ramp and FP8's units, degrees of experts.
RC_GTEST_PROP(MemoryLimitsImpl, WhatIsNamedStartsAndFits, ()) {
  spec::RunConfig config;
  config.model = *rc::gen::element<std::string>("llama-1.36b", "qwen3-0.6b", "olmoe-1b-7b");
  config.dtype = Dtype::bf16, config.sequence_length = *rc::gen::element<std::int64_t>(24, 64, 512);
  config.sequences = *rc::gen::element<std::int64_t>(16, 24, 48), config.sample_sentences = 0;
  const std::int64_t ranks = *rc::gen::element<std::int64_t>(1, 2, 4);
  if (*rc::gen::arbitrary<bool>()) config.ramp = {{.sequences = config.sequences / 2, .steps = 1}};
  if (*rc::gen::arbitrary<bool>()) {
    config.linear = spec::quantise::Recipe::fp8_tensor;
    config.linear_weights = *rc::gen::element(spec::TwinsMade::step, spec::TwinsMade::automatic);
  }
  if (config.model == "olmoe-1b-7b") config.expert_ranks = *rc::gen::element<std::int64_t>(1, ranks);
  const spec::ModelSpec model = spec::find_model(config.model);
  const spec::RunRanks on{ranks, ranks};
  RC_PRE(spec::divides(config, model, on));
  const spec::Batch batch = spec::divide(config, model, on).batch;
  const at::Device gpu(at::kCUDA, 0);
  try {
    spec::check(spec::linear_precision(config, model), model, batch.micro * config.sequence_length);
  } catch (const SpecError&) {
    RC_DISCARD("FP8 does not take the micro-batch that is asked for");
  }
  const auto plan = memory_plan(config, model, batch, gpu);
  const Count capacity(plan.peak.to_int64() * *rc::gen::inRange<std::int64_t>(20, 100) / 100);
  std::string text;
  try {
    refuse_what_cannot_fit(
        plan, config, model, batch,
        {.device = capacity.to_int64(), .host = host * 1000, .ranks = ranks, .ranks_per_host = ranks});
    RC_FAIL("it fits");
  } catch (const UserError& error) {
    text = error.what();
  }
  RC_LOG() << text << "\n";
  static const std::regex way("((?:[a-z_.]+=[a-z0-9_]+ )+)\\([0-9.]+ [KMGT]?i?B\\)"),
      elsewhere("on ([0-9,]+) GPUs with "), setting("([a-z_.]+)=([a-z0-9_]+)");
  for (std::sregex_iterator each(text.begin(), text.end(), way), none; each != none; ++each) {
    spec::RunConfig other = config;
    const std::string settings = (*each)[1];
    for (std::sregex_iterator one(settings.begin(), settings.end(), setting); one != none; ++one) {
      const std::string value = (*one)[2];
      spec::find_key(std::string((*one)[1]))
          ->set(other,
                std::isdigit(value[0]) ? spec::Value(std::int64_t{std::stoll(value)}) : spec::Value(value));
    }
    spec::RunRanks there = on;
    const std::string before = text.substr(0, static_cast<std::size_t>(each->position()));
    std::smatch gpus;
    if (std::regex_search(before, gpus, elsewhere)) there = {std::stoll(gpus[1]), std::stoll(gpus[1])};
    RC_ASSERT(spec::divides(other, model, there));
    const spec::Division division = spec::divide(other, model, there);
    RC_ASSERT(memory_plan(other, model, division.batch, gpu, division.layout).peak <= capacity);
    spec::check(spec::linear_precision(other, model), model, division.batch.micro * other.sequence_length);
  }
}

}  // namespace
}  // namespace assay::impl::run::memory_limits_test
