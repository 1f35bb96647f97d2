// labels: unit
#include "spec/config/check.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::check_test {
namespace {

/// Label and message of the refusal; empty when accepted.
template <class... Models>
std::string refusal(const RunConfig& config, const Models&... model) {
  try {
    check(config, model...);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

ModelSpec small() {
  ModelSpec model;
  model.name = "small";
  model.vocab = 512;
  model.context = 256;
  return model;
}

ModelSpec two_layers() {
  ModelSpec model = small();
  model.layers = 2;
  return model;
}

TEST(ConfigSpec, DefaultsHold) {
  EXPECT_EQ(refusal(RunConfig()), "");
  EXPECT_EQ(refusal(RunConfig(), small()), "");
}

TEST(ConfigSpec, C1RefusesASettingOutOfRange) {
  RunConfig config;
  config.steps = 0;
  EXPECT_EQ(refusal(config).substr(0, 32), "config_c1: train.steps = 0 is ou");
}

TEST(ConfigSpec, C37RefusesTwoValidationSets) {
  RunConfig config;
  config.data_paths = {"train.bin"}, config.data_dtype = "uint16";
  config.eval_paths = {"val.bin"};
  EXPECT_EQ(refusal(config), "");
  config.eval_share = 0.25;
  EXPECT_EQ(refusal(config),
            "config_c37: eval.paths and eval.share = 0.25 are two validation sets: leave one of them out");
  config.eval_paths.clear();
  EXPECT_EQ(refusal(config), "");
}

/// Of check_reached.
std::string never_reached(const RunConfig& config) {
  try {
    check_reached(config);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigSpec, C41RefusesAProfileBehindTheRun) {
  RunConfig config;
  config.steps = 10, config.profile = {.first = 9, .last = 10};
  EXPECT_EQ(never_reached(config), "");
  config.profile.last = 11;
  EXPECT_EQ(never_reached(config),
            "config_c41: profile.steps ends with step 11, behind train.steps = 10: name steps up to that, or "
            "raise train.steps");
  config.warmup_steps = config.decay_steps = 0;
  EXPECT_EQ(refusal(config), "") << "a checkpoint may hold it";
}

TEST(ConfigSpec, C42RefusesStagesBehindTheRun) {
  RunConfig config;
  config.steps = 10, config.sequences = 8, config.ramp = {{2, 6}, {4, 4}};
  EXPECT_EQ(never_reached(config), "");
  config.ramp[1].steps = 5;
  EXPECT_EQ(never_reached(config),
            "config_c42: stage 4:5 of batch.ramp ends behind train.steps = 10: shorten the stages, leave "
            "batch.ramp out, or raise train.steps");
}

TEST(ConfigSpec, C43RefusesAStageAboveTheBatchOfANewRun) {
  RunConfig config;
  config.steps = 10, config.sequences = 8, config.ramp = {{4, 2}, {8, 2}};
  EXPECT_EQ(never_reached(config), "");
  config.ramp[1].sequences = 9;
  EXPECT_EQ(never_reached(config),
            "config_c43: stage 9:2 of batch.ramp is above batch.sequences = 8, which the ramp grows to: "
            "lower the stage, or raise batch.sequences");
  config.resume = Resume::automatic;
  EXPECT_EQ(never_reached(config), "") << "a run whose batch was made smaller";
}

TEST(ConfigSpec, C39RefusesTwoSourcesOfAName) {
  RunConfig config;
  config.data_paths = {"a.bin", "b.bin"};
  config.mixture = {{"web", 1, 1}, {"web", 2, 1}};
  EXPECT_EQ(refusal(config).substr(0, 51), "config_c39: two sources of data.mixture are called ");
  config.mixture[1].name = "code";
  EXPECT_EQ(refusal(config), "");
}

TEST(ConfigSpec, C40RefusesAMixtureOfOtherFilesThanThere) {
  RunConfig config;
  config.data_paths = {"a.bin", "b.bin"};
  config.mixture = {{"web", 1, 1}};
  EXPECT_EQ(
      refusal(config),
      "config_c40: data.mixture is of 1 file, data.paths names 2: say of each source of several files how "
      "many they are, NAME:WEIGHT:FILES");
  config.mixture[0].files = 2;
  EXPECT_EQ(refusal(config), "");
  config.mixture = {{"web", 333'333, 1}, {"code", 1'000'000'000, 1}};
  EXPECT_EQ(refusal(config).substr(0, 11), "mixture_c2:");
}

TEST(ConfigSpec, C38RefusesAValidationSetThatIsNeverEvaluated) {
  RunConfig config;
  config.eval_share = 0.25, config.eval_at_end = false;
  EXPECT_EQ(refusal(config).substr(0, 62), "config_c38: a validation set is given and never evaluated: set");
  config.eval_every = 10;
  EXPECT_EQ(refusal(config), "");
  config.eval_every = 0, config.eval_at_end = true;
  EXPECT_EQ(refusal(config), "");
}

// What is about validation needs a set, and files of a set the type of the files trained on.
TEST(ConfigSpec, C6RefusesValidationWithoutASet) {
  const auto expect = [](const RunConfig& config, const std::string& key, const std::string& when) {
    EXPECT_EQ(refusal(config),
              "config_c6: " + key + " has no effect here: it is read only when " + when + "; leave it out");
  };
  RunConfig every, best, files;
  every.eval_every = 10;
  expect(every, "eval.every = 10", "eval.paths or eval.share is given");
  best.keep_best = true;
  expect(best, "checkpoint.keep_best = \"on\"", "eval.paths or eval.share is given");
  files.eval_paths = {"val.bin"};
  expect(files, "eval.paths = [\"val.bin\"]", "data.paths is given");
}

TEST(ConfigSpec, C4RefusesAScheduleLongerThanTheRun) {
  RunConfig config;
  config.steps = 100;
  config.warmup_steps = 21;
  config.decay_steps = 80;
  EXPECT_EQ(refusal(config).substr(0, 9), "config_c4");
  config.warmup_steps = 20;
  EXPECT_EQ(refusal(config), "");
  config.schedule = ScheduleKind::cosine;  // the decay is not read
  config.warmup_steps = 101;
  EXPECT_EQ(refusal(config).substr(0, 9), "config_c4");
  config.warmup_steps = 100;
  EXPECT_EQ(refusal(config), "");
}

TEST(ConfigSpec, C46RefusesStepsThatAreNotThoseOfTheTokens) {
  RunConfig config;
  config.tokens = 250 * 32 * 128;
  EXPECT_EQ(refusal(config), "");
  config.tokens += 1;
  EXPECT_EQ(refusal(config),
            "config_c46: train.tokens = 1024001 are 251 steps of this batch, and train.steps = 250: leave "
            "one of the "
            "two out");
  config.steps = 251;
  EXPECT_EQ(refusal(config), "");
}

TEST(ConfigSpec, C5RefusesResumeWithoutItsPath) {
  RunConfig config;
  config.resume = Resume::path;
  EXPECT_EQ(refusal(config).substr(0, 9), "config_c1");  // an empty path is out of range already
  config.resume = Resume::automatic;
  config.resume_path = "runs/x/step-10";
  EXPECT_EQ(refusal(config).substr(0, 9), "config_c5");
  config.resume = Resume::path;
  EXPECT_EQ(refusal(config), "");
}

// Nothing is asked for by a value that switches off what is not there.
TEST(ConfigSpec, AnUnreadSettingWithItsNeutralValueIsNoError) {
  RunConfig config;
  config.data_paths = {"tokens.bin"}, config.data_dtype = "uint16";
  config.sample_sentences = 0;
  EXPECT_EQ(refusal(config), "");
  config.eval_at_end = false;
  EXPECT_EQ(refusal(config), "");
  config.sample_sentences = 3;
  EXPECT_EQ(refusal(config),
            "config_c6: sample.sentences = 3 has no effect here: it is read only when data.paths is empty; "
            "leave it out");
}

TEST(ConfigSpec, C6RefusesASettingThatWouldNotBeRead) {
  RunConfig config;
  config.end_of_document = 3;
  EXPECT_EQ(
      refusal(config),
      "config_c6: data.end_of_document = 3 has no effect here: it is read only when data.paths is given; "
      "leave it "
      "out");
  config = RunConfig();
  config.data_paths = {"a.bin"}, config.sample_sentences = 0, config.document_ends = true;
  EXPECT_EQ(refusal(config), "");
  config.end_of_document = 3;
  EXPECT_EQ(refusal(config),
            "config_c6: data.document_ends = \"on\" has no effect here: it is read only when data.paths is "
            "given and data.end_of_document is -1; leave it out");
  config = RunConfig();
  config.schedule = ScheduleKind::constant;
  EXPECT_EQ(refusal(config), "");
  config.final_lr_ratio = 0.5;
  EXPECT_EQ(refusal(config).substr(0, 9), "config_c6");
}

TEST(ConfigSpec, C7RefusesSequencesLongerThanTheContext) {
  RunConfig config;
  config.sequence_length = 257;
  EXPECT_EQ(refusal(config, small()),
            "config_c7: batch.sequence_length = 257 exceeds the context of small, 256 tokens");
}

ModelSpec small_latent() {
  ModelSpec model = small();
  model.kv_heads = model.heads;
  model.latent = LatentAttention{.key_value_rank = 4, .rope_dim = 2, .value_dim = 3};
  return model;
}

TEST(ConfigSpec, TakesFp8BesideLatentAttentionAndExperts) {
  RunConfig config;
  config.linear = quantise::Recipe::fp8_block;
  for (ModelSpec model : {small(), small_latent()}) {
    EXPECT_EQ(refusal(config, model), "");
    model.experts = Experts{.count = 4, .active = 2, .width = 8};
    EXPECT_EQ(refusal(config, model), "");
    config.expert_ranks = 2;
    EXPECT_NO_THROW(check(config));
  }
}

TEST(ConfigSpec, C44RefusesACapacityBesideFp8) {
  RunConfig config;
  config.capacity = 1.5;
  EXPECT_NO_THROW(check(config));
  config.linear = quantise::Recipe::fp8_tensor;
  EXPECT_EQ(tests::label_of([&] { check(config); }), "config_c44");
  config.capacity = 0;
  EXPECT_NO_THROW(check(config));
}

TEST(ConfigSpec, C26RefusesMlaUpWithoutLatentAttention) {
  RunConfig config;
  config.recompute = Recompute::mla_up;
  EXPECT_EQ(refusal(config, small_latent()), "");
  EXPECT_EQ(refusal(config, small()),
            "config_c26: memory.recompute = \"mla_up\" makes q, k and v of latent attention again, which " +
                small().name +
                " does not have: leave it out, or set it to \"norms_swiglu\" or \"attention\"");
}

TEST(ConfigSpec, C8RefusesNarrowTokensForAWideVocabulary) {
  RunConfig config;
  config.data_paths = {"tokens.bin"};
  config.data_dtype = "uint16";
  ModelSpec model = small();
  model.vocab = 65536;
  EXPECT_EQ(refusal(config, model), "");
  model.vocab = 65537;
  EXPECT_EQ(refusal(config, model).substr(0, 9), "config_c8");
  config.data_dtype = "uint32";
  EXPECT_EQ(refusal(config, model), "");
}

TEST(ConfigSpec, C9RefusesAnEndOfDocumentOutsideTheVocabulary) {
  RunConfig config;
  config.end_of_document = 512;
  EXPECT_EQ(refusal(config, small()).substr(0, 9), "config_c9");
  config.end_of_document = 511;
  EXPECT_EQ(refusal(config, small()), "");
}

TEST(ConfigSpec, C16RefusesLossesOfRoutersThatTheModelLacks) {
  for (double RunConfig::*coefficient : {&RunConfig::balance, &RunConfig::router_z}) {
    RunConfig config;
    EXPECT_EQ(refusal(config, small()), "");
    config.*coefficient = 0.5;
    EXPECT_EQ(refusal(config, small()).substr(0, 10), "config_c16");
    ModelSpec sparse = small();
    sparse.family = Family::mixtral;
    sparse.experts = Experts{.count = 4, .active = 2, .width = 8};
    config.sequence_length = std::min<std::int64_t>(config.sequence_length, sparse.context);
    EXPECT_EQ(refusal(config, sparse), "");
  }
}

TEST(ConfigSpec, C16RefusesWhatRoutersAloneRead) {
  RunConfig shares, capacity;
  shares.balance_over = load_balancing::Form::running;
  capacity.capacity = 1.25;
  for (const RunConfig& config : {shares, capacity}) {
    EXPECT_EQ(refusal(config, small()).substr(0, 10), "config_c16");
    ModelSpec sparse = small();
    sparse.experts = Experts{.count = 4, .active = 2, .width = 8};
    EXPECT_EQ(refusal(config, sparse), "");
  }
}

TEST(ConfigSpec, C28RefusesACapacityBelowOne) {
  for (const double capacity : {0.0, 1.0, 1.25, 40.0}) {
    RunConfig config;
    config.capacity = capacity;
    EXPECT_EQ(refusal(config), "") << capacity;
  }
  for (const double capacity : {0.25, 0.99}) {
    RunConfig config;
    config.capacity = capacity;
    EXPECT_EQ(refusal(config).substr(0, 10), "config_c28") << capacity;
  }
}

TEST(ConfigSpec, C29RefusesARateOfBiasesThatTheModelLacks) {
  RunConfig config;
  config.bias_rate = 0.01;
  EXPECT_EQ(refusal(config, small()).substr(0, 10), "config_c29");
  ModelSpec model = small();
  model.experts = Experts{.count = 4, .active = 2, .width = 8};
  EXPECT_EQ(refusal(config, model).substr(0, 10), "config_c29");
  model.experts->router_bias = true;
  EXPECT_EQ(refusal(config, model), "");
}

TEST(ConfigSpec, C45RefusesExpertsInFp8WithoutFp8TensorOrExperts) {
  RunConfig config;
  using quantise::Recipe;
  const ModelSpec mixtral = find_model("mixtral-8x7b");
  for (const Recipe recipe : {Recipe::none, Recipe::fp8_block, Recipe::mxfp8, Recipe::fp8_tensor}) {
    config.linear = recipe, config.linear_experts = false;
    EXPECT_EQ(refusal(config, mixtral), "");
    EXPECT_FALSE(linear_precision(config, mixtral).experts);
    config.linear_experts = true;
    EXPECT_EQ(refusal(config, mixtral).substr(0, 10), recipe == Recipe::fp8_tensor ? "" : "config_c45");
    EXPECT_EQ(refusal(config, two_layers()).substr(0, 10), "config_c45");
  }
  config.expert_ranks = 2;
  EXPECT_EQ(refusal(config, mixtral), "");
  config.linear_bf16_layers = {"first"};
  const LinearPrecision linear = linear_precision(config, mixtral);
  EXPECT_EQ(linear.of_experts(1, 32), Recipe::none);
  EXPECT_EQ(linear.of_experts(2, 32), Recipe::fp8_tensor);
  EXPECT_EQ(
      describe(linear),
      "fp8_tensor: activations e4m3, weights e4m3, gradients e5m2; routed experts too, but for gradients "
      "of their weights; not in layers 0; weights quantised before each GEMM");
  ModelSpec odd = mixtral;
  odd.experts->width = 14344;
  EXPECT_THROW(check(linear, odd, 4096), SpecError);
  odd.experts->width = 14352;
  EXPECT_NO_THROW(check(linear, odd, 4096));
}

TEST(ConfigSpec, C10RefusesLayersThatTheModelLacks) {
  RunConfig config;
  config.linear = quantise::Recipe::fp8_tensor;
  for (const std::string layer : {"2", "-1", "01x", "middle", ""}) {
    config.linear_bf16_layers = {"0", layer};
    EXPECT_EQ(refusal(config, two_layers()).substr(0, 10), "config_c10") << layer;
  }
  config.linear_bf16_layers = {"last", "0", "1", "first"};
  EXPECT_EQ(refusal(config, two_layers()), "");
  const LinearPrecision all = linear_precision(config, two_layers());
  EXPECT_EQ(all.unquantised, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(all.unquantised_layers(), (std::vector<std::int64_t>{0, 1}));
  config.linear_bf16_layers = {"last"};
  const LinearPrecision last = linear_precision(config, two_layers());
  EXPECT_EQ(last.of(0, 2), quantise::Recipe::none);  // the embedding
  EXPECT_EQ(last.of(1, 2), quantise::Recipe::fp8_tensor);
  EXPECT_EQ(last.of(2, 2), quantise::Recipe::none);
  EXPECT_EQ(last.of(3, 2), quantise::Recipe::none);  // the head
  const std::string formats =
      "fp8_tensor: activations e4m3, weights e4m3, gradients e5m2; not in layers 1; weights quantised ";
  EXPECT_EQ(describe(last), formats + "before each GEMM");
  EXPECT_EQ(describe(last, /*codes=*/true), formats + "in their shards and gathered as codes");
}

TEST(ConfigSpec, C11RefusesTwinsOfWeightsThatARankHoldsShardsOf) {
  RunConfig config;
  config.linear = quantise::Recipe::fp8_tensor;
  for (const auto& [data, accepted] : {std::pair{DataParallel::replicate, true},
                                       {DataParallel::zero1, true},
                                       {DataParallel::shard, false}}) {
    config.data_parallel = data;
    config.linear_weights = TwinsMade::step;
    EXPECT_EQ(refusal(config).empty(), accepted) << to_string(data);
    if (!accepted) {
      EXPECT_EQ(refusal(config).substr(0, 10), "config_c11");
    }
    config.linear_weights = TwinsMade::use;
    EXPECT_EQ(refusal(config), "");
  }
}

TEST(ConfigSpec, MicroFollowsFromTheRanks) {
  RunConfig config;
  config.sequences = 12;
  EXPECT_EQ(micro_sequences(config, 3), 4);
  EXPECT_EQ(micro_sequences(config, 24), 1);
  config.ramp = {{8, 3}, {6, 1}};
  EXPECT_EQ(micro_sequences(config, 1), std::gcd(config.sequences, std::int64_t{2})) << "divides every stage";
  config.ramp = {};
  config.micro = 2;
  EXPECT_EQ(micro_sequences(config, 3), 2);
}

TEST(CheckSpec, C12RefusesTensorRanksBesideFp8) {
  RunConfig config;
  config.tensor_ranks = 2;
  EXPECT_NO_THROW(check(config));
  config.linear = quantise::Recipe::fp8_tensor;
  EXPECT_EQ(tests::label_of([&] { check(config); }), "config_c12");
}

}  // namespace
}  // namespace assay::spec::check_test
