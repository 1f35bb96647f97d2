// labels: unit property fuzz
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/faults.hpp"

namespace assay::spec::hugging_face_test {
namespace {

using Json = nlohmann::json;

/// The keys of Meta-Llama-3.1-8B's config.json that describe its structure.
Json llama_3_1() {
  return Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "mlp_bias": false,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"}})");
}

Json qwen3_0_6b() {
  return Json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
    "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})");
}

/// Keys of openai-community/gpt2.
Json gpt2() {
  return Json::parse(R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1,
    "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
    "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257})");
}

/// Keys of Qwen/Qwen2.5-7B.
Json qwen2_5() {
  return Json::parse(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 3584,
    "initializer_range": 0.02, "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28,
    "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false,
    "use_sliding_window": false, "vocab_size": 152064})");
}

/// Keys of mistralai/Mixtral-8x7B-v0.1.
Json mixtral() {
  return Json::parse(R"({
    "architectures": ["MixtralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
    "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null,
    "tie_word_embeddings": false, "vocab_size": 32000})");
}

/// Keys of Qwen/Qwen3-30B-A3B.
Json qwen3_moe() {
  return Json::parse(R"({
    "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
    "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
    "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
    "use_sliding_window": false, "vocab_size": 151936})");
}

/// Keys of allenai/OLMoE-1B-7B-0924.
Json olmoe() {
  return Json::parse(R"({
    "architectures": ["OlmoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "clip_qkv": null,
    "eos_token_id": 50279, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 1024, "max_position_embeddings": 4096, "model_type": "olmoe", "norm_topk_prob": false,
    "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16,
    "num_key_value_heads": 16, "output_router_logits": false, "pad_token_id": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.01, "tie_word_embeddings": false,
    "use_cache": true, "vocab_size": 50304})");
}

/// Keys of deepseek-ai/DeepSeek-V3-Base.
Json deepseek_v3() {
  return Json::parse(R"({
    "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "ep_size": 1, "first_k_dense_replace": 3,
    "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048,
    "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
    "num_attention_heads": 128, "routed_scaling_factor": 2.5,
    "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                            "weight_block_size": [128, 128]},
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                     "original_max_position_embeddings": 4096, "type": "yarn"},
    "rope_theta": 10000, "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 4,
    "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280})");
}

ModelSpec read(const Json& config) {
  return model_from_hugging_face(config.dump(), "hub/Some-Model/config.json");
}

std::string error_of(const Json& config) {
  try {
    read(config);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  } catch (const SpecError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HuggingFace, ReadsLlama31WithItsRopeScaling) {
  ModelSpec expected = find_model("llama3-8b");
  expected.name = std::string("Some-Model");
  expected.context = 131072;
  expected.rope_scaling = RopeScaling{8, 1, 4, 8192};
  EXPECT_EQ(read(llama_3_1()), expected);
}

TEST(HuggingFace, ReadsQwen3) {
  ModelSpec expected = find_model("qwen3-0.6b");
  expected.name = std::string("Some-Model");
  EXPECT_EQ(read(qwen3_0_6b()), expected);
}

TEST(HuggingFace, ReadsTheNewerRopeParameters) {
  Json config = llama_3_1();
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = 500000.0;
  config.erase("rope_scaling");
  config.erase("rope_theta");
  EXPECT_EQ(read(config), read(llama_3_1()));
}

TEST(HuggingFace, ReadsTheMlpFromTheActivation) {
  Json config = llama_3_1();
  EXPECT_EQ(read(config).mlp, Mlp::swiglu);
  config["hidden_act"] = "gelu_pytorch_tanh";
  EXPECT_EQ(read(config).mlp, Mlp::geglu);
  config["hidden_activation"] = "gelu_pytorch_tanh";
  EXPECT_EQ(read(config).mlp, Mlp::geglu);
}

TEST(HuggingFace, NeverTakesAGemmaForALlama) {
  Json config = llama_3_1();
  config["hidden_activation"] = "gelu_pytorch_tanh";  // a name that a Llama's class does not know
  EXPECT_EQ(read_hugging_face(config.dump(), "config.json").without_effect,
            std::vector<std::string>(
                {"hidden_activation = \"gelu_pytorch_tanh\" (no option of a \"llama\" in transformers)"}));
  EXPECT_EQ(read(config).mlp, Mlp::swiglu);
  config["hidden_act"] = "gelu_pytorch_tanh";
  for (const char* type : {"gemma", "gemma2", "gemma3_text"}) {
    config["model_type"] = type;
    EXPECT_NE(error_of(config).find("embeddings scaled by the root of the width"), std::string::npos)
        << error_of(config);
  }
}

TEST(HuggingFace, FillsWhatOlderFilesLeaveOut) {
  Json config = llama_3_1();
  for (const char* key : {"rope_scaling", "rope_theta", "num_key_value_heads", "tie_word_embeddings",
                          "hidden_act", "attention_bias", "mlp_bias", "initializer_range"})
    config.erase(key);
  const ModelSpec model = read(config);
  EXPECT_EQ(model.kv_heads, 32);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_EQ(model.rope_theta, 10000);
  EXPECT_FALSE(model.rope_scaling);
  EXPECT_FALSE(model.tied_embeddings);
  Json qwen = qwen3_0_6b();
  qwen.erase("head_dim");  // 128 in Qwen3Config, not hidden_size / heads = 64
  EXPECT_EQ(read(qwen).head_dim, 128);
}

std::int64_t window_of(const Json& config) { return read(config).window; }

// transformers 5.23: MistralConfig and MixtralConfig give every layer the window, Qwen2Config and Qwen3Config
// those from max_window_layers on, Qwen3MoeConfig all; of Qwens only with use_sliding_window.
TEST(HuggingFace, ReadsTheWindowThatEveryLayerHas) {
  Json config = llama_3_1();
  config["model_type"] = "mistral", config["sliding_window"] = 4096;
  EXPECT_EQ(window_of(config), 4096);
  config["max_position_embeddings"] = 4097;
  EXPECT_EQ(window_of(config), 4096);
  config["max_position_embeddings"] = 4096;  // no sequence is longer
  EXPECT_EQ(window_of(config), 0);
  config["max_position_embeddings"] = 32768;
  config["sliding_window"] = nullptr;
  EXPECT_EQ(window_of(config), 0);
  config.erase("sliding_window");  // the class's
  EXPECT_EQ(window_of(config), 4096);
  config["sliding_window"] = 0;
  EXPECT_NE(error_of(config).find("\"sliding_window\" = 0 must be at least 1"), std::string::npos);

  Json other = mixtral();
  other["sliding_window"] = 128;
  EXPECT_EQ(window_of(other), 128);
  Json moe = qwen3_moe();
  moe["sliding_window"] = 64;
  EXPECT_EQ(window_of(moe), 0);  // use_sliding_window = false
  moe["use_sliding_window"] = true;
  EXPECT_EQ(window_of(moe), 64);
  for (Json qwen : {qwen2_5(), qwen3_0_6b()}) {
    qwen["sliding_window"] = 64, qwen["use_sliding_window"] = true, qwen["max_window_layers"] = 0;
    EXPECT_EQ(window_of(qwen), 64);
    qwen["max_window_layers"] = 28;  // as many as there are: none has it
    EXPECT_EQ(window_of(qwen), 0);
    qwen["layer_types"] = std::vector<std::string>(28, "sliding_attention");
    EXPECT_EQ(window_of(qwen), 64);
    qwen["layer_types"] = std::vector<std::string>(28, "full_attention");
    EXPECT_EQ(window_of(qwen), 0);
  }
}

TEST(HuggingFace, AWindowOfSomeLayersLeavesNothingOutOfSequencesThatAreNoLonger) {
  Json config = qwen3_0_6b();
  config["sliding_window"] = 4096, config["use_sliding_window"] = true, config["max_window_layers"] = 14;
  const auto refused = [&](std::optional<std::int64_t> longest) {
    try {
      EXPECT_EQ(model_from_hugging_face(config.dump(), "config.json", longest).window, 0);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(4096), "");
  EXPECT_NE(refused(4097).find(
                "\"use_sliding_window\": a sliding attention window of some layers only is not supported"),
            std::string::npos)
      << refused(4097);
  EXPECT_NE(refused({}).find("(--seq 4096; of a run batch.sequence_length=4096)"), std::string::npos)
      << refused({});
  EXPECT_EQ(read_hugging_face(config.dump(), "config.json", 2048).without_effect.front(),
            "sliding_window = 4096 (it leaves nothing out of sequences of 2048 tokens)");
  config["layer_types"] = std::vector<std::string>(28, "full_attention");
  config["layer_types"][27] = "sliding_attention";
  EXPECT_EQ(refused(4096), "");
  EXPECT_NE(refused(4097).find("of some layers only"), std::string::npos);
  config["max_position_embeddings"] = 4096;  // no sequence is longer than they
  EXPECT_EQ(refused({}), "");
  EXPECT_NE(refused(4097), "");
  config.erase("sliding_window");  // the class's
  EXPECT_EQ(refused(4096), "");
  EXPECT_NE(refused(4097).find("--seq 4096"), std::string::npos);
  config["sliding_window"] = nullptr;  // no layer has one
  EXPECT_EQ(refused(4097), "");
}

TEST(HuggingFace, ARefusalListsWhatTrains) {
  Json config = llama_3_1();
  config["model_type"] = "phi3";
  EXPECT_EQ(error_of(config),
            "hub/Some-Model/config.json: model_type \"phi3\" is not supported; the spec has \"llama\", "
            "\"mistral\", \"qwen2\", \"qwen3\", \"mixtral\", \"qwen3_moe\", \"deepseek_v3\", \"olmoe\", "
            "which train, or \"gpt2\", which is counted alone");
}

TEST(HuggingFace, RefusesByNameWhatTheSpecDoesNotHave) {
  const std::vector<std::pair<std::string, Json>> features = {
      {"hidden_act", "gelu"},         {"is_causal", false},
      {"sliding_window", 4096},       {"layer_types", Json::array({"full_attention", "sliding_attention"})},
      {"partial_rotary_factor", 0.5}, {"quantization_config", {{"quant_method", "fp8"}}},
      {"model_type", "mamba"}};
  for (const auto& [key, value] : features) {
    Json config = llama_3_1();
    config[key] = value;
    const std::string error = error_of(config);
    EXPECT_EQ(error.find("hub/Some-Model/config.json:"), 0u) << error;
    const std::string named = key == "layer_types"      ? "sliding_attention"
                              : key == "sliding_window" ? "sliding"
                                                        : key;
    EXPECT_NE(error.find(named), std::string::npos) << error;
  }
  for (const char* type : {"linear", "dynamic", "longrope"}) {
    Json config = llama_3_1();
    config["rope_scaling"] = {{"type", type}, {"factor", 2.0}};
    EXPECT_NE(error_of(config).find(type), std::string::npos) << error_of(config);
  }
}

TEST(HuggingFace, RefusesByNameWhatAFamilyOfTheSpecDoesNotHave) {
  const auto refused = [](Json config, const char* key, const Json& value, const std::string& named) {
    EXPECT_EQ(error_of(config), "accepted") << error_of(config);
    config[key] = value;
    EXPECT_NE(error_of(config).find(named), std::string::npos) << error_of(config);
  };
  refused(gpt2(), "activation_function", "relu", "activation_function \"relu\" is not supported");
  refused(gpt2(), "scale_attn_by_inverse_layer_idx", true, "scale_attn_by_inverse_layer_idx");
  refused(gpt2(), "scale_attn_weights", false, "scale_attn_weights");
  refused(gpt2(), "add_cross_attention", true, "add_cross_attention");
  refused(gpt2(), "n_embd", 100, "not a multiple of the number of heads, 12");
  refused(qwen3_moe(), "mlp_only_layers", Json::array({1}), "\"mlp_only_layers\" other than the first ones");
  refused(qwen3_moe(), "mlp_only_layers", "none", "must be an array");
  refused(deepseek_v3(), "attention_bias", true, "attention_bias");
  refused(deepseek_v3(), "quantization_config", {{"quant_method", "gptq"}}, "quantization_config");
  refused(deepseek_v3(), "head_dim", 32, "\"head_dim\" = 32 beside latent attention");
  refused(deepseek_v3(), "num_key_value_heads", 64, "it must be 128");
  refused(deepseek_v3(), "topk_group", 9, "model_c17: topk_group=9 is not in [1, 8]");
  refused(olmoe(), "clip_qkv", 8.0, "\"clip_qkv\"");
  refused(mixtral(), "router_jitter_noise", 0.1, "\"router_jitter_noise\"");
  refused(deepseek_v3(), "n_shared_experts", -1, "n_shared_experts");
  refused(deepseek_v3(), "qk_nope_head_dim", std::int64_t{INT64_MAX}, "qk_nope_head_dim");
  refused(
      llama_3_1(), "attention_dropout", 0.1,
      "\"attention_dropout\" = 0.1 of a \"llama\" changes what is computed, and Assay does not compute it: "
      "it passes as 0");
}

TEST(HuggingFace, SaysAllMistakesAtOnce) {
  Json config = llama_3_1();
  config["attention_dropout"] = 0.1, config["is_causal"] = false, config["vocab_size"] = "many";
  config.erase("hidden_size");
  const std::string said = error_of(config);
  EXPECT_EQ(said.find("4 mistakes:\n  hub/Some-Model/config.json"), 0u) << said;
  for (const char* word : {"\"vocab_size\" must be an integer", "\"hidden_size\" is missing",
                           "\"attention_dropout\" = 0.1", "\"is_causal\" = false"})
    EXPECT_NE(said.find(word), std::string::npos) << word << "\n" << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 4) << said;
}

// transformers 5.23, modeling_rope_utils.py standardize_rope_params: the file's own key wins.
TEST(HuggingFace, ReadsTheOriginalContextFromTheFileBeforeTheTable) {
  Json config = llama_3_1();
  config["original_max_position_embeddings"] = 4096;
  EXPECT_EQ(read(config).rope_scaling->original_context, 4096);
}

TEST(HuggingFace, ReadsTheFilesOfEveryFamilyAsTheirModels) {
  const std::pair<Json, const char*> files[] = {{gpt2(), "gpt2"},
                                                {qwen2_5(), "qwen2.5-7b"},
                                                {mixtral(), "mixtral-8x7b"},
                                                {qwen3_moe(), "qwen3-30b-a3b"},
                                                {deepseek_v3(), "deepseek-v3"},
                                                {olmoe(), "olmoe-1b-7b"}};
  for (const auto& [file, name] : files) {
    ModelSpec expected = find_model(name);
    expected.name = std::string("Some-Model");
    EXPECT_EQ(to_toml(read(file)), to_toml(expected)) << name;
    EXPECT_EQ(read(file), expected) << name;
  }
}

// Mistral-7B-v0.3: Llama's layers, 7,248,023,552 parameters (its safetensors index: 14,496,047,104 bytes).
Json mistral() {
  return Json::parse(R"({"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "vocab_size": 32768})");
}

TEST(HuggingFace, ReadsMistralAsTheLlamaThatItIs) {
  const ModelSpec model = read(mistral());
  EXPECT_EQ(parameter_count(model).to_double(), 7248023552.0);
  EXPECT_EQ(model.family, Family::llama);
  EXPECT_EQ(model.rope_theta, 1e6);
  Json llama = mistral();
  llama["model_type"] = "llama";
  EXPECT_EQ(read(llama), model);
  // Nemo's heads are narrower than the width over their number.
  Json nemo = mistral();
  nemo["hidden_size"] = 5120, nemo["head_dim"] = 128, nemo["num_hidden_layers"] = 40,
  nemo["vocab_size"] = 131072;
  EXPECT_EQ(read(nemo).head_dim, 128);
  EXPECT_EQ(parameter_count(read(nemo)).to_double(), 12247782400.0);
  // The first version has a window; a file that does not say so has the class's.
  Json windowed = mistral();
  windowed.erase("sliding_window");
  windowed["rope_theta"] = 1e4, windowed["vocab_size"] = 32000;
  ModelSpec first = find_model("mistral-7b");
  first.name = std::string("Some-Model");
  EXPECT_EQ(read(windowed), first);
}

// transformers 5.23, each class's __init__: MistralConfig and MixtralConfig 8 key/value heads,
// Qwen3MoeConfig 4.
TEST(HuggingFace, FillsHeadsAndNormAsEachClassDoes) {
  for (auto [file, heads, eps] :
       {std::tuple(mistral(), 8, 1e-6), std::tuple(mixtral(), 8, 1e-5), std::tuple(qwen3_moe(), 4, 1e-6),
        std::tuple(llama_3_1(), 32, 1e-6), std::tuple(olmoe(), 16, 1e-5)}) {
    const std::int64_t query_heads = file["num_attention_heads"];
    file.erase("rms_norm_eps");
    EXPECT_EQ(read(file).norm_eps, eps) << file["model_type"];
    file.erase("num_key_value_heads");
    EXPECT_EQ(read(file).kv_heads, heads) << file["model_type"];
    file["num_key_value_heads"] = nullptr;
    EXPECT_EQ(read(file).kv_heads, query_heads) << file["model_type"];
  }
}

TEST(HuggingFace, ReadsVariantsOfAFamily) {
  Json config = llama_3_1();
  config["attention_bias"] = config["mlp_bias"] = true;
  const ModelSpec biased = read(config);
  EXPECT_TRUE(biased.qkv_bias && biased.output_bias && biased.mlp_bias);

  config = qwen3_moe();
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {0, 1, 2};
  config["num_local_experts"] = config["num_experts"];  // as transformers v5 writes it
  config.erase("num_experts");
  EXPECT_EQ(read(config).experts,
            (Experts{.count = 128, .active = 8, .width = 768, .first_dense = 3, .every = 2}));
  config.erase("head_dim");  // hidden_size / heads, unlike Qwen3Config
  EXPECT_EQ(read(config).head_dim, 64);

  config.erase("norm_topk_prob");  // false in Qwen3MoeConfig and OlmoeConfig, true in DeepseekV3Config
  EXPECT_FALSE(read(config).experts->renormalised);
  config = olmoe();
  for (const char* key : {"norm_topk_prob", "num_experts", "num_experts_per_tok"}) config.erase(key);
  EXPECT_EQ(read(config).experts, find_model("olmoe-1b-7b").experts);
  config["norm_topk_prob"] = true;
  EXPECT_TRUE(read(config).experts->renormalised);
  config = deepseek_v3();
  for (const char* key : {"norm_topk_prob", "n_group", "topk_group", "routed_scaling_factor", "scoring_func"})
    config.erase(key);
  EXPECT_EQ(read(config).experts, find_model("deepseek-v3").experts);

  config = deepseek_v3();
  config["q_lora_rank"] = nullptr;
  config.erase("num_nextn_predict_layers");
  EXPECT_EQ(read(config).latent->query_rank, 0);
  EXPECT_TRUE(read(config).latent->interleaved);  // the key is missing
  config["rope_interleave"] = false;
  EXPECT_FALSE(read(config).latent->interleaved);
  config["rope_interleave"] = nullptr;
  EXPECT_FALSE(read(config).latent->interleaved);
  EXPECT_EQ(read(config).multi_token_layers, 0);
  config["first_k_dense_replace"] = 60;
  EXPECT_EQ(read(config).experts->first_dense, 60);
  config["first_k_dense_replace"] = 61;  // of 61 layers
  EXPECT_FALSE(read(config).experts);
  config.erase("q_lora_rank");
  EXPECT_NE(error_of(config).find("\"q_lora_rank\" is missing"), std::string::npos) << error_of(config);

  config = gpt2();
  config["n_inner"] = 100;
  EXPECT_EQ(read(config).ffn, 100);

  config = qwen3_0_6b();
  config["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
  EXPECT_EQ(read(config).rope_scaling,
            (RopeScaling{.factor = 4, .original_context = 40960, .kind = RopeScalingKind::yarn}));
  config["rope_scaling"] = {{"type", "yarn"},          {"factor", 4.0},
                            {"beta_fast", 16},         {"beta_slow", 2},
                            {"mscale", 0.5},           {"mscale_all_dim", 0.7},
                            {"attention_factor", 1.5}, {"original_max_position_embeddings", 64}};
  EXPECT_EQ(read(config).rope_scaling, (RopeScaling{.factor = 4,
                                                    .original_context = 64,
                                                    .kind = RopeScalingKind::yarn,
                                                    .beta_fast = 16,
                                                    .beta_slow = 2,
                                                    .mscale = 0.5,
                                                    .mscale_all_dim = 0.7,
                                                    .attention_factor = 1.5}));
  config["rope_scaling"]["truncate"] = false;
  EXPECT_NE(error_of(config).find("\"rope_scaling.truncate\" = false of a \"yarn\" changes what is computed"),
            std::string::npos)
      << error_of(config);
  config["rope_scaling"]["truncate"] = true;
  config["rope_scaling"]["attention_factor"] = 0;
  EXPECT_NE(error_of(config).find("\"attention_factor\" = 0"), std::string::npos) << error_of(config);
}

TEST(HuggingFace, AcceptsAWindowSizeThatIsNotInUse) {
  Json config = qwen3_0_6b();
  config["sliding_window"] = 4096;
  EXPECT_EQ(error_of(config), "accepted");
}

TEST(HuggingFace, NamesWhatIsMissingOrOfAnotherType) {
  Json config = llama_3_1();
  config.erase("vocab_size");
  EXPECT_EQ(error_of(config),
            "hub/Some-Model/config.json: \"vocab_size\" is missing; this is not a complete config.json");
  config["vocab_size"] = "128256";
  EXPECT_NE(error_of(config).find("must be an integer"), std::string::npos);
  config["vocab_size"] = 18446744073709551615u;
  EXPECT_NE(error_of(config).find("must be at most 9223372036854775807, not 18446744073709551615"),
            std::string::npos);
  config["vocab_size"] = -5;
  EXPECT_EQ(error_of(config).substr(0, 8), "model_c1");
  EXPECT_NE(error_of(config).find("correct it in hub/Some-Model/config.json"), std::string::npos);
}

TEST(HuggingFace, NamesTheFileTheKeyAndItsLine) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = llama_3_1().dump(2);
    text.replace(text.find(from), from.size(), to);
    try {
      model_from_hugging_face(text, "a/config.json");
    } catch (const UserError& error) {
      return std::string(error.what());
    } catch (const SpecError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal("\"hidden_size\": 4096", "\"hidden_size\": \"4096\""),
            "a/config.json:7:18: \"hidden_size\" must be an integer, not \"4096\"");
  EXPECT_EQ(refusal("\"factor\": 8.0", "\"factor\": [8]"),
            "a/config.json:18:15: \"rope_scaling.factor\" must be a number, not an array");
  EXPECT_EQ(refusal("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"),
            "model_c2: num_key_value_heads=5 does not divide num_attention_heads=32; correct it in "
            "a/config.json:15:26 (names: spec/model/model.md)");
  EXPECT_EQ(refusal("\"hidden_size\": 4096", "\"hidden_size\": 0"),
            "model_c1: hidden_size=0 is not in [1, 2147483647]; correct it in a/config.json:7:18 (names: "
            "spec/model/model.md)");
  EXPECT_NE(refusal("\"hidden_size\": 4096,", "\"hidden_size\": 4096").find("(line 8, column "),
            std::string::npos);
}

TEST(HuggingFace, SurvivesDeepNesting) {
  std::string deep(400000, '[');
  deep.append(400000, ']');
  EXPECT_THROW(model_from_hugging_face(deep, "deep"), UserError);
  EXPECT_THROW(model_from_hugging_face("{\"vocab_size\": " + deep + ", \"model_type\": \"llama\"}", "deep"),
               UserError);
}

/// Each edit drops a key or puts a value of any kind in its place; and then bytes of the text are changed.
RC_GTEST_PROP(HuggingFace, AnswersAnyEditWithAModelOrAnError, ()) {
  Json config = *rc::gen::element(llama_3_1(), qwen3_0_6b(), gpt2(), qwen2_5(), mixtral(), mistral(),
                                  qwen3_moe(), deepseek_v3(), olmoe());
  for (int edit = *rc::gen::inRange(0, 4); edit > 0; --edit) {
    auto at = config.begin();
    std::advance(at, *rc::gen::inRange<std::size_t>(0, config.size()));
    at.value() = Json::parse(*rc::gen::element<std::string>(
        "null", "0", "-1", "1", "3", "1.5", "1e308", "9223372036854775807", "18446744073709551615", "true",
        "\"\"", "\"llama\"", "\"default\"", "[]", "{}", "{\"rope_type\": \"llama3\"}", "{\"type\": 3}",
        "[\"full_attention\"]"));
  }
  std::string text = config.dump();
  for (int edit = *rc::gen::inRange(0, 3); edit > 0; --edit)
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  try {
    check(model_from_hugging_face(text, "edited"));
  } catch (const ManyFaults& error) {
    for (const std::string& each : error.messages())
      RC_ASSERT(each.find("edited") == 0 || each.find("model_c") == 0);
  } catch (const UserError& error) {
    RC_ASSERT(error.code() == ExitCode::usage);
    RC_ASSERT(std::string(error.what()).find("edited") == 0);
  } catch (const SpecError& error) {
    RC_ASSERT(error.label().find("model_c") == 0);
  }
}

}  // namespace
}  // namespace assay::spec::hugging_face_test
