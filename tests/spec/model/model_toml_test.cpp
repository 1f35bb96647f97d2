// labels: unit property fuzz
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/faults.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::model_toml_test {
namespace {

const std::string good =
    "name = \"m\"\nfamily = \"llama\"\nvocab = 8\nwidth = 4\nlayers = 1\nheads = 2\nkv_heads = 1\nhead_dim = "
    "2\n"
    "ffn = 6\ncontext = 16\ntied_embeddings = false\nqk_norm = false\nnorm_eps = 1e-5\nrope_theta = 10000\n";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = good;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    model_from_toml(text, "m.toml");
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  } catch (const SpecError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelToml, ReadsEveryField) {
  const ModelSpec model = model_from_toml(
      good +
          "init_std = 0.01\n[rope_scaling]\nfactor = 8\nlow_freq_factor = 1\nhigh_freq_factor = 4.0\n"
          "original_context = 8192\n",
      "m.toml");
  EXPECT_EQ(model, (ModelSpec{.name = "m",
                              .family = Family::llama,
                              .vocab = 8,
                              .width = 4,
                              .layers = 1,
                              .heads = 2,
                              .kv_heads = 1,
                              .head_dim = 2,
                              .ffn = 6,
                              .context = 16,
                              .tied_embeddings = false,
                              .qk_norm = false,
                              .norm_eps = 1e-5,
                              .rope_theta = 10000,
                              .rope_scaling = RopeScaling{8, 1, 4, 8192},
                              .init_std = 0.01}));
}

std::string text_of(const std::string& page) {
  std::ifstream file(tests::source_dir() + "/" + page);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The model of one's own in docs/running.md trains, has what model.md requires and nothing else, and the
/// parameters that the page states.
TEST(ModelToml, TheDocumentedModelOfOnesOwnIsCompleteAndMinimal) {
  const std::string page = text_of("docs/running.md"), fence = "```toml\n";
  const std::size_t begin = page.find(fence) + fence.size(), end = page.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  const std::string example = page.substr(begin, end - begin);
  const ModelSpec model = model_from_toml(example, "docs/running.md");
  EXPECT_NO_THROW(require_trainable(model));
  EXPECT_EQ(parameter_count(model), Count(49'357'312));
  EXPECT_NE(page.find("`parameters = 49_357_312`"), std::string::npos);

  const std::string meaning = text_of("spec/model/model.md"), start = "Required: ";
  const std::size_t list = meaning.find(start) + start.size();
  const std::string required = meaning.substr(list, meaning.find('.', list) - list);
  std::istringstream lines(example);
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(' '));
    std::string without = example;
    without.erase(without.find(line), line.size());
    EXPECT_NE(error_of(without).find("\"" + key + "\" is missing"), std::string::npos) << key;
    EXPECT_NE(required.find(key), std::string::npos) << key;
  }
}

TEST(ModelToml, ReadsWhatALlamaDoesNotHave) {
  const ModelSpec deepseek = find_model("deepseek-v3");
  EXPECT_EQ(deepseek.experts, (Experts{256, 8, 2048, 2048, 3, 1, true, Scoring::sigmoid, true, 8, 4, 2.5}));
  EXPECT_EQ(deepseek.latent, (LatentAttention{1536, 512, 64, 128}));
  EXPECT_EQ(deepseek.multi_token_layers, 1);
  EXPECT_EQ(deepseek.rope_scaling, (RopeScaling{.factor = 40,
                                                .original_context = 4096,
                                                .kind = RopeScalingKind::yarn,
                                                .mscale = 1,
                                                .mscale_all_dim = 1}));
  const ModelSpec gpt2 = find_model("gpt2");
  EXPECT_TRUE(gpt2.norm == Norm::layer_norm && gpt2.mlp == Mlp::gelu && gpt2.positions == Positions::learned);
  EXPECT_TRUE(gpt2.qkv_bias && gpt2.output_bias && gpt2.mlp_bias && gpt2.norm_bias);
}

TEST(ModelToml, NamesMistakesInTables) {
  EXPECT_EQ(error_of(good + "[experts]\ncount = 4\nactive = 2\n"),
            "m.toml:15:1: \"experts.width\" is missing; add it (meaning: spec/model/model.md)");
  EXPECT_EQ(error_of(good + "[experts]\ncount = 4\nactive = 2\nwidth = 8\ntop_k = 4\n").substr(0, 40),
            "m.toml:19:1: unknown key \"experts.top_k\"");
  EXPECT_EQ(error_of(good + "latent_attention = 3\n"),
            "m.toml:15:20: \"latent_attention\" must be a table, not 3");
  EXPECT_EQ(error_of(good + "mlp = \"relu\"\n"),
            "m.toml:15:7: mlp \"relu\" is not known; give one of \"swiglu\", \"gelu\", \"geglu\"");
  EXPECT_NE(error_of(replaced("rope_theta = 10000\n", "")).find("\"rope_theta\" is missing"),
            std::string::npos);
}

TEST(ModelToml, NamesTheNearestKeyAndItsLine) {
  EXPECT_EQ(error_of(replaced("width", "widht")),
            "m.toml:4:1: unknown key \"widht\"; did you mean \"width\"?");
  EXPECT_EQ(error_of(good + "[rope_scaling]\nfaktor = 8\nlow_freq_factor = 1\nhigh_freq_factor = 4\n"
                            "original_context = 64\n"),
            "m.toml:16:1: unknown key \"rope_scaling.faktor\"; did you mean \"rope_scaling.factor\"?");
}

TEST(ModelToml, NamesWhatIsMissingOrOfAnotherType) {
  EXPECT_EQ(error_of(replaced("ffn = 6\n", "")),
            "m.toml:1:1: \"ffn\" is missing; add it (meaning: spec/model/model.md)");
  EXPECT_EQ(error_of(replaced("ffn = 6", "ffn = 6.5")), "m.toml:9:7: \"ffn\" must be an integer, not 6.5");
  EXPECT_EQ(error_of(replaced("ffn = 6", "ffn = \"6x\"")),
            "m.toml:9:7: \"ffn\" must be an integer, not \"6x\"");
  // A whole number however it is written (spec/text/amount.hpp).
  for (const char* same : {"ffn = 6.0", "ffn = \"6\"", "ffn = 6e0"})
    EXPECT_EQ(error_of(replaced("ffn = 6", same)), "accepted") << same;
  EXPECT_EQ(error_of(replaced("qk_norm = false", "qk_norm = 0")),
            "m.toml:12:11: \"qk_norm\" must be true or false, not 0");
  EXPECT_EQ(error_of(replaced("norm_eps = 1e-5", "norm_eps = true")),
            "m.toml:13:12: \"norm_eps\" must be a number, not true");
  EXPECT_EQ(error_of(replaced("name = \"m\"", "name = 3")), "m.toml:1:8: \"name\" must be a text, not 3");
  EXPECT_EQ(error_of(good + "rope_scaling = 8\n"), "m.toml:15:16: \"rope_scaling\" must be a table, not 8");
  EXPECT_EQ(
      error_of(replaced("\"llama\"", "\"lama\"")),
      "m.toml:2:10: family \"lama\" is not known; give one of \"llama\", \"qwen2\", \"qwen3\", \"gpt2\", "
      "\"mixtral\", \"qwen3_moe\", \"deepseek_v3\", \"olmoe\"");
}

TEST(ModelToml, SaysWhereTheSyntaxBreaks) {
  EXPECT_EQ(error_of("name = \n").substr(0, 27), "m.toml:1:8: not valid TOML:") << error_of("name = \n");
}

TEST(ModelToml, AppliesTheConstraints) {
  EXPECT_EQ(error_of(replaced("head_dim = 2", "head_dim = 3")),
            "model_c3: head_dim=3 is odd; correct it in m.toml:8:12");
}

TEST(ModelToml, SaysAllMistakesAtOnce) {
  std::string text = replaced("ffn = 6\n", "fnn = 6\n");
  text.replace(text.find("qk_norm = false"), 15, "qk_norm = 0");
  EXPECT_EQ(error_of(text + "[experts]\ncount = \"many\"\nwidth = 4\n"),
            "4 mistakes:\n"
            "  m.toml:9:1: unknown key \"fnn\"; did you mean \"ffn\"?\n"
            "  m.toml:12:11: \"qk_norm\" must be true or false, not 0\n"
            "  m.toml:16:9: \"experts.count\" must be an integer, not \"many\"\n"
            "  m.toml:15:1: \"experts.active\" is missing; add it (meaning: spec/model/model.md)");
  text = replaced("head_dim = 2", "head_dim = 3");
  text.replace(text.find("norm_eps = 1e-5"), 15, "norm_eps = 0.0");
  EXPECT_EQ(error_of(text),
            "2 mistakes:\n"
            "  model_c3: head_dim=3 is odd; correct it in m.toml:8:12\n"
            "  model_c4: norm_eps=0.000000; correct it in m.toml:13:12");
}

TEST(ModelToml, HoldsAFileToTheParametersItStates) {
  EXPECT_EQ(error_of(good + "parameters = 195\n"),
            "m.toml:15:14: \"parameters\" states 195, but the fields give 196; correct one of them");
  EXPECT_EQ(error_of(good + "parameters = 196\n"), "accepted");
  EXPECT_NE(error_of(good + "parameters = -1\n"), "accepted");
  EXPECT_EQ(error_of(good + "active_parameters = 196\npublished_parameters = 196\n"), "accepted");
  for (const std::string key : {"active_parameters", "published_parameters"})
    EXPECT_NE(error_of(good + key + " = 195\n").find("\"" + key + "\" states 195"), std::string::npos);
}

TEST(ModelToml, EveryBuiltInFileStatesItsParametersAndSource) {
  for (const FactFile& file : fact_files()) {
    if (file.path.substr(0, 12) != "spec/models/") continue;
    EXPECT_NE(file.text.find("\nparameters = "), std::string_view::npos) << file.path;
    EXPECT_NE(file.text.find("2026-"), std::string_view::npos) << file.path << " states no date";
  }
}

RC_GTEST_PROP(ModelToml, ReadsBackWhatItWrites, ()) {
  ModelSpec model = tests::draw_described_model();
  model.name =
      *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab-\"\\ #'="))));
  model.norm_eps = *rc::gen::positive<double>();
  if (!model.rope_scaling) model.rope_theta = 1 + std::abs(*rc::gen::arbitrary<double>());  // model_c6
  RC_PRE(std::isfinite(model.norm_eps) && model.norm_eps > 0 && std::isfinite(model.rope_theta));
  RC_PRE(model.name.size() <= 256);
  RC_ASSERT(model_from_toml(to_toml(model), "written") == model);
}

/// Random edits of a valid file: whatever they make of it, the reader accepts it or throws one of the two
/// errors.
RC_GTEST_PROP(ModelToml, AnswersAnyEditWithAModelOrAnError, ()) {
  std::string text = to_toml(tests::draw_described_model());
  const auto edits = *rc::gen::inRange(1, 6);
  for (int edit = 0; edit < edits; ++edit) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const auto length = *rc::gen::inRange<std::size_t>(0, 12);
    const std::string insert = *rc::gen::element<std::string>(
        "", "\n", "=", "[", "]", "\"", "\0", "\xff", "9223372036854775807", "-1", "nan", "inf", "1e999", "{}",
        "[[x]]", "vocab = 1\n", "rope_scaling = {}\n", "true", "#", "'''");
    text = text.substr(0, at) + insert + (at + length < text.size() ? text.substr(at + length) : "");
  }
  try {
    check(model_from_toml(text, "edited"));
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
}  // namespace assay::spec::model_toml_test
