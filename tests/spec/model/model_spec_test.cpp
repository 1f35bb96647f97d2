// labels: unit
#include "spec/model/model_spec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/model/inventory.hpp"

namespace assay::spec::model_spec_test {
namespace {

ModelSpec tiny() { return find_model("tiny-llama"); }

/// Expects `check` to refuse tiny-llama after `change` with this label.
void expect_refused(const std::string& label, const std::function<void(ModelSpec&)>& change) {
  ModelSpec model = tiny();
  change(model);
  try {
    check(model);
    ADD_FAILURE() << label << ": accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), label) << error.what();
  }
}

const double not_positive[] = {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()};

TEST(ModelSpec, AcceptsEveryBuiltInModel) {
  EXPECT_GE(model_names().size(), 41u);
  for (const std::string& name : model_names()) {
    EXPECT_NO_THROW(check(find_model(name))) << name;
    EXPECT_EQ(find_model(name).name, name);
  }
}

TEST(ModelSpec, CountsTheParametersThatWerePublished) {
  const std::pair<const char*, std::int64_t> published[] = {{"llama-1.36b", 1'294'159'104},
                                                            {"llama2-7b", 6'738'415'616},
                                                            {"mistral-7b", 7'241'732'096},
                                                            {"llama2-13b", 13'015'864'320},
                                                            {"llama2-70b", 68'976'648'192},
                                                            {"llama3-8b", 8'030'261'248},
                                                            {"llama3-70b", 70'553'706'496},
                                                            {"llama3.1-8b", 8'030'261'248},
                                                            {"llama3.1-70b", 70'553'706'496},
                                                            {"llama3.1-405b", 405'853'388'800},
                                                            {"kempnerforge-13b", 14'840'386'560},
                                                            {"kempnerforge-70b", 70'553'706'496},
                                                            {"qwen2.5-7b", 7'615'616'512},
                                                            {"qwen3-0.6b", 596'049'920},
                                                            {"qwen3-1.7b", 1'720'574'976},
                                                            {"qwen3-4b", 4'022'468'096},
                                                            {"qwen3-8b", 8'190'735'360},
                                                            {"qwen2.5-0.5b", 494'032'768},
                                                            {"qwen3-14b", 14'768'307'200},
                                                            {"qwen3-32b", 32'762'123'264},
                                                            {"qwen3-30b-a3b", 30'532'122'624},
                                                            {"qwen3-235b-a22b", 235'093'634'560},
                                                            {"qwen3-1.8b-as-run", 1'829'140'480},
                                                            {"mixtral-8x7b", 46'702'792'704},
                                                            {"mixtral-8x22b", 140'620'634'112},
                                                            {"deepseek-v3", 671'026'404'352},
                                                            {"gpt2", 124'439'808},
                                                            {"gpt2-medium", 354'823'168},
                                                            {"gpt2-large", 774'030'080},
                                                            {"gpt2-xl", 1'557'611'200}};
  for (const auto& [name, count] : published) {
    EXPECT_EQ(parameter_count(find_model(name)), Count(count)) << name;
    const auto is_its_file = [name = name](const FactFile& file) {
      return file.path == "spec/models/" + std::string(name) + ".toml";
    };
    const auto file = std::find_if(fact_files().begin(), fact_files().end(), is_its_file);
    ASSERT_NE(file, fact_files().end()) << name;
    EXPECT_NE(file->text.find("\npublished_parameters = "), std::string_view::npos) << name;
  }
}

/// DeepSeek-V3's files: bf16 and fp8 elements are the model, the multi-token block, and once more the
/// embedding and the head that the block shares.
TEST(ModelSpec, AccountsForEveryElementOfDeepSeeksFiles) {
  const ParameterCounts counts = parameter_counts(find_model("deepseek-v3"));
  EXPECT_EQ(counts.total + counts.multi_token + counts.token_embedding + counts.head,
            Count(3'918'786'560) + 680'571'043'840);
}

TEST(ModelSpec, CountsWhatATokenVisits) {
  EXPECT_EQ(active_parameter_count(find_model("mixtral-8x7b")), Count(12'879'925'248));
  EXPECT_EQ(active_parameter_count(find_model("qwen3-30b-a3b")), Count(3'353'032'704));
  const ParameterCounts deepseek = parameter_counts(find_model("deepseek-v3"));
  EXPECT_EQ(deepseek.active, Count(37'552'282'624));
  EXPECT_EQ(deepseek.active_without_embeddings(), Count(36'625'603'584));
  EXPECT_EQ(active_parameter_count(find_model("llama3-8b")), Count(8'030'261'248));
}

/// The model that ran has 16 key/value heads and a narrower MLP; the two differ by 2,048 per layer.
TEST(ModelSpec, TellsTheQwen3ThatRanFromTheOneConfigured) {
  EXPECT_EQ(parameter_count(find_model("qwen3-1.8b")), Count(1'829'140'480) + 24 * 2048);
  EXPECT_EQ(2048 * Count(6) * 2048 * find_model("qwen3-1.8b-as-run").ffn, Count(137'430'564'864));
}

TEST(ModelSpec, C1RejectsExtentsOutOfRange) {
  for (auto field : {&ModelSpec::vocab, &ModelSpec::width, &ModelSpec::layers, &ModelSpec::heads,
                     &ModelSpec::kv_heads, &ModelSpec::head_dim, &ModelSpec::ffn, &ModelSpec::context})
    for (std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31})
      expect_refused("model_c1", [&](ModelSpec& m) { m.*field = value; });
  expect_refused("model_c1", [](ModelSpec& m) { m.layers = (1 << 16) + 1; });
}

TEST(ModelSpec, C2RejectsKvHeadsThatDoNotDivideHeads) {
  expect_refused("model_c2", [](ModelSpec& m) { m.kv_heads = 3; });
  expect_refused("model_c2", [](ModelSpec& m) { m.kv_heads = 8; });
}

TEST(ModelSpec, C3RejectsAnOddHeadDim) {
  expect_refused("model_c3", [](ModelSpec& m) { m.head_dim = 31; });
}

TEST(ModelSpec, C4RejectsANormEpsThatIsNotPositive) {
  for (double value : not_positive) expect_refused("model_c4", [&](ModelSpec& m) { m.norm_eps = value; });
}

TEST(ModelSpec, C5RejectsARopeThetaThatIsNotPositive) {
  for (double value : not_positive) expect_refused("model_c5", [&](ModelSpec& m) { m.rope_theta = value; });
}

TEST(ModelSpec, C6RejectsImpossibleRopeScaling) {
  const RopeScaling good{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192};
  ModelSpec model = tiny();
  model.rope_scaling = good;
  EXPECT_NO_THROW(check(model));
  const auto refuse_scaling = [&](const std::function<void(RopeScaling&)>& change) {
    expect_refused("model_c6", [&](ModelSpec& m) {
      m.rope_scaling = good;
      change(*m.rope_scaling);
    });
  };
  refuse_scaling([](RopeScaling& s) { s.factor = 0.5; });
  refuse_scaling([](RopeScaling& s) { s.factor = std::numeric_limits<double>::infinity(); });
  refuse_scaling([](RopeScaling& s) { s.low_freq_factor = 4; });
  refuse_scaling([](RopeScaling& s) { s.low_freq_factor = 0; });
  refuse_scaling([](RopeScaling& s) { s.high_freq_factor = std::numeric_limits<double>::quiet_NaN(); });
  refuse_scaling([](RopeScaling& s) { s.original_context = 0; });
  refuse_scaling([](RopeScaling& s) { s.original_context = std::int64_t{1} << 31; });

  model.rope_scaling = RopeScaling{.factor = 8, .kind = RopeScalingKind::yarn};
  EXPECT_NO_THROW(check(model));
  const auto refuse_yarn = [&](const std::function<void(RopeScaling&)>& change) {
    refuse_scaling([&](RopeScaling& s) {
      s.kind = RopeScalingKind::yarn;
      change(s);
    });
  };
  refuse_yarn([](RopeScaling& s) { s.factor = 0.5; });
  refuse_yarn([](RopeScaling& s) { s.beta_slow = 0; });
  refuse_yarn([](RopeScaling& s) { s.beta_fast = 1; });
  refuse_yarn([](RopeScaling& s) { s.beta_fast = std::numeric_limits<double>::infinity(); });
  refuse_yarn([](RopeScaling& s) { s.mscale = -1; });
  refuse_yarn([](RopeScaling& s) { s.mscale_all_dim = std::numeric_limits<double>::quiet_NaN(); });
  refuse_yarn([](RopeScaling& s) { s.attention_factor = -1; });
  refuse_yarn([](RopeScaling& s) { s.original_context = 1; });  // its range ends before the first pair
}

TEST(ModelSpec, C7RejectsAnInitStdThatIsNotPositive) {
  for (double value : not_positive) expect_refused("model_c7", [&](ModelSpec& m) { m.init_std = value; });
}

TEST(ModelSpec, C8RejectsMoreParametersThanAnIndexHolds) {
  expect_refused("model_c8", [](ModelSpec& m) { m.vocab = m.width = 1 << 30; });
  // Every extent at its limit must not overflow on the way to the refusal.
  expect_refused("model_c8", [](ModelSpec& m) {
    m.vocab = m.width = m.heads = m.kv_heads = m.ffn = (std::int64_t{1} << 31) - 1;
    m.head_dim = (std::int64_t{1} << 31) - 2;
    m.layers = 1 << 16;
  });
}

TEST(ModelSpec, C9RejectsUnprintableNames) {
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string(257, 'x')})
    expect_refused("model_c9", [&](ModelSpec& m) { m.name = name; });
}

/// tiny-llama with every layer sparse, as Mixtral.
ModelSpec sparse() {
  ModelSpec model = tiny();
  model.experts = Experts{.count = 8, .active = 2, .width = 96, .shared_width = 96};
  return model;
}

ModelSpec latent() {
  ModelSpec model = tiny();
  model.kv_heads = model.heads;
  model.latent = LatentAttention{.query_rank = 48, .key_value_rank = 24, .rope_dim = 8, .value_dim = 16};
  return model;
}

ModelSpec gpt2() {
  ModelSpec model = tiny();
  model.family = Family::gpt2;
  model.kv_heads = model.heads;
  model.norm = Norm::layer_norm;
  model.mlp = Mlp::gelu;
  model.positions = Positions::learned;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = true;
  return model;
}

void expect_refused(const std::string& label, ModelSpec model,
                    const std::function<void(ModelSpec&)>& change) {
  EXPECT_NO_THROW(check(model));
  change(model);
  try {
    check(model);
    ADD_FAILURE() << label << ": accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), label) << error.what();
  }
}

TEST(ModelSpec, C3AllowsAnOddHeadDimThatIsNotTurned) {
  ModelSpec model = gpt2();
  model.head_dim = 31;
  EXPECT_NO_THROW(check(model));
  ModelSpec compressed = latent();
  compressed.head_dim = 31;
  EXPECT_NO_THROW(check(compressed));
}

TEST(ModelSpec, C8CountsTheExtremesOfEveryPartWithoutOverflow) {
  const std::int64_t most = (std::int64_t{1} << 31) - 1;
  expect_refused("model_c8", sparse(), [&](ModelSpec& m) {
    m.width = most, m.layers = 1 << 16, m.multi_token_layers = 64;
    m.experts = Experts{.count = most, .active = most, .width = most, .shared_width = most};
  });
  expect_refused("model_c8", latent(), [&](ModelSpec& m) {
    m.width = m.heads = m.kv_heads = most, m.head_dim = most - 1, m.layers = 1 << 16;
    m.latent = LatentAttention{.query_rank = most, .key_value_rank = most, .rope_dim = 2, .value_dim = most};
  });
}

TEST(ModelSpec, C10RejectsABiasOfANormThatHasNone) {
  expect_refused("model_c10", [](ModelSpec& m) { m.norm_bias = true; });
}

TEST(ModelSpec, C11RejectsRopeScalingWithoutRope) {
  expect_refused("model_c11", gpt2(), [](ModelSpec& m) { m.rope_scaling = RopeScaling{}; });
}

TEST(ModelSpec, C12RejectsAGpt2WithWhatHasNoNameInIt) {
  for (const std::function<void(ModelSpec&)>& change : std::vector<std::function<void(ModelSpec&)>>{
           [](ModelSpec& m) { m.kv_heads = 2; }, [](ModelSpec& m) { m.mlp = Mlp::swiglu; },
           [](ModelSpec& m) { m.positions = Positions::rope; }, [](ModelSpec& m) { m.qk_norm = true; },
           [](ModelSpec& m) { m.norm = Norm::rms_norm, m.norm_bias = false; },
           [](ModelSpec& m) { m.experts = sparse().experts; },
           [](ModelSpec& m) { m.multi_token_layers = 1; }})
    expect_refused("model_c12", gpt2(), change);
}

TEST(ModelSpec, C13RejectsImpossibleExperts) {
  const auto refuse = [](const std::function<void(Experts&)>& change) {
    expect_refused("model_c13", sparse(), [&](ModelSpec& m) { change(*m.experts); });
  };
  refuse([](Experts& e) { e.count = 0; });
  refuse([](Experts& e) { e.active = 0; });
  refuse([](Experts& e) { e.active = 9; });
  refuse([](Experts& e) { e.width = 0; });
  refuse([](Experts& e) { e.shared_width = -1; });
  refuse([](Experts& e) { e.first_dense = 4; });
  refuse([](Experts& e) { e.first_dense = -1; });
  refuse([](Experts& e) { e.every = 0; });
  refuse([](Experts& e) { e.every = 5; });
  refuse([](Experts& e) { e.first_dense = 3, e.every = 3; });  // of four layers, the third alone could be
}

TEST(ModelSpec, C14RejectsImpossibleLatentAttention) {
  const auto refuse = [](const std::function<void(ModelSpec&)>& change) {
    expect_refused("model_c14", latent(), change);
  };
  refuse([](ModelSpec& m) { m.latent->query_rank = -1; });
  refuse([](ModelSpec& m) { m.latent->key_value_rank = 0; });
  refuse([](ModelSpec& m) { m.latent->rope_dim = 7; });
  refuse([](ModelSpec& m) { m.latent->rope_dim = 32; });
  refuse([](ModelSpec& m) { m.latent->value_dim = 0; });
  refuse([](ModelSpec& m) { m.latent->norm_eps = 0; });
  refuse([](ModelSpec& m) { m.kv_heads = 2; });
  refuse([](ModelSpec& m) { m.qk_norm = true; });
  refuse([](ModelSpec& m) { m.qkv_bias = true; });
  refuse([](ModelSpec& m) { m.output_bias = true; });
  refuse([](ModelSpec& m) { m.positions = Positions::learned; });
}

TEST(ModelSpec, C17RejectsImpossibleRouting) {
  const auto refuse = [](const std::function<void(Experts&)>& change) {
    expect_refused("model_c17", sparse(), [&](ModelSpec& m) { change(*m.experts); });
  };
  refuse([](Experts& e) { e.groups = 0; });
  refuse([](Experts& e) { e.groups = 9; });
  refuse([](Experts& e) { e.groups = 3; });
  refuse([](Experts& e) { e.groups = 8, e.active_groups = 8; });  // one expert has no second best
  refuse([](Experts& e) { e.active_groups = 0; });
  refuse([](Experts& e) { e.active_groups = 2; });
  refuse([](Experts& e) { e.groups = 4, e.active_groups = 2, e.active = 5; });
  for (const double factor : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")})
    refuse([&](Experts& e) { e.scaling_factor = factor; });
  ModelSpec most = sparse();
  most.experts->groups = 4, most.experts->active_groups = 2, most.experts->active = 4;
  EXPECT_NO_THROW(check(most));
}

TEST(ModelSpec, C18RejectsANormAcrossHeadsWithoutANorm) {
  expect_refused("model_c18", [](ModelSpec& m) { m.qk_norm_across_heads = true; });
}

TEST(ModelSpec, C16RejectsAnImpossibleWindow) {
  for (std::int64_t window : {std::int64_t{-1}, std::int64_t{1} << 31})
    expect_refused("model_c16", [&](ModelSpec& m) { m.window = window; });
}

TEST(ModelSpec, C15RejectsAnImpossibleNumberOfMultiTokenBlocks) {
  for (std::int64_t count : {-1, 65})
    expect_refused("model_c15", [&](ModelSpec& m) { m.multi_token_layers = count; });
}

TEST(ModelSpec, KnowsWhichLayersAreSparse) {
  ModelSpec model = sparse();
  model.layers = 7;
  for (std::int64_t first = 0; first < 7; ++first)
    for (std::int64_t every = 1; every <= 7; ++every) {
      model.experts->first_dense = first, model.experts->every = every;
      std::int64_t count = 0;
      for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        EXPECT_EQ(model.sparse(layer), layer >= first && (layer + 1) % every == 0);
        count += model.sparse(layer);
      }
      EXPECT_EQ(model.sparse_layers(), count) << first << " " << every;
    }
  EXPECT_FALSE(tiny().sparse(0));
  EXPECT_EQ(tiny().sparse_layers(), 0);
}

}  // namespace
}  // namespace assay::spec::model_spec_test
