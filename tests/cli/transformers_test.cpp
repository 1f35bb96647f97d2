// labels: cli
// What is written for Hugging Face transformers, loaded by transformers itself.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "spec/checkpoint/weight_files.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "tests/cli/golden_python.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/scratch.hpp"

namespace assay::transformers_cli_test {
namespace {

using Json = nlohmann::json;

/// Sizes of any kind, with reals that are whole, windows below and above the context, heads of any width.
spec::ModelSpec drawn(std::uint64_t seed) {
  const auto draw = rc::gen::exec([] {
    spec::ModelSpec m = tests::draw_described_model();
    m.norm_eps = *rc::gen::element(1.0, 1e-5), m.init_std = *rc::gen::element(1.0, 0.02);
    m.rope_theta = *rc::gen::element(1e4, 1e16, 12.5);
    m.mlp_bias = m.norm_bias = false, m.norm = spec::Norm::rms_norm, m.positions = spec::Positions::rope;
    m.multi_token_layers = 0;
    if (m.latent) m.latent->norm_eps = 1e-6, m.window = 0;
    if (m.family == spec::Family::olmoe) {
      m.experts = tests::draw_experts(1);
      m.latent.reset(), m.window = 0, m.qk_norm = m.qk_norm_across_heads = true;
      m.qkv_bias = m.output_bias = *rc::gen::arbitrary<bool>();
      if (*rc::gen::arbitrary<bool>()) m.head_dim = 2, m.width = 2 * m.heads;
    }
    if (!m.experts) return m;
    m.experts->router_bias = m.latent.has_value();
    m.experts->scoring = m.latent ? spec::Scoring::sigmoid : spec::Scoring::softmax;
    m.experts->shared_width = m.latent ? m.experts->width : 0;
    if (!m.latent) m.experts->groups = m.experts->active_groups = 1, m.experts->scaling_factor = 1;
    return m;
  });
  return draw(rc::Random(seed), 100).value();
}

TEST(Transformers, LoadsEveryConfigThatIsWritten) {
  constexpr int of_each_class = 8;
  std::map<std::string, int> written;
  Json cases = Json::array();
  const std::vector<std::string> types = {"llama",   "mistral",   "qwen2", "qwen3",
                                          "mixtral", "qwen3_moe", "olmoe", "deepseek_v3"};
  const auto enough = [&](const std::string& type) { return written[type] >= of_each_class; };
  for (std::uint64_t seed = 0; seed < 10'000 && !std::ranges::all_of(types, enough); ++seed) {
    const spec::ModelSpec model = drawn(seed);
    spec::HuggingFaceConfig as;
    try {
      spec::check(model);
      as = spec::to_hugging_face(model, "F32");
    } catch (const std::exception&) {
      continue;  // no class computes it
    }
    if (++written[Json::parse(as.json)["model_type"]] > of_each_class) continue;
    Json tensors = Json::object();
    for (const spec::WeightFile& file : spec::files_to_write(spec::inventory(as.model), "F32", INT64_MAX))
      for (const auto& tensor : file.header.tensors) tensors[tensor.name] = tensor.shape;
    cases.push_back({{"config", as.json}, {"tensors", tensors}});
  }
  for (const std::string& type : types) EXPECT_TRUE(enough(type)) << type << " " << written[type];
  if (const std::string reason = tests::lacks_package("transformers"); !reason.empty())
    GTEST_SKIP() << reason;
  const tests::Scratch scratch;
  const std::string file = (scratch.path() / "cases.json").string();
  std::ofstream(file) << cases.dump();
  const auto loaded = tests::run_golden_python("configs_in_transformers.py " + file, 300);
  EXPECT_EQ(loaded.code, 0) << loaded.messages;
}

}  // namespace
}  // namespace assay::transformers_cli_test
