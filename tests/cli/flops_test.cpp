// labels: unit cli
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "impl/cli/flops/flops_report.hpp"
#include "impl/cli/verb.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/model/inventory.hpp"

namespace assay::impl::cli::flops_test {
namespace {

struct Result {
  int code;
  std::string out, err;
};

Result flops_of(std::vector<std::string> words) {
  words.insert(words.begin(), "flops");
  std::ostringstream out, err;
  const int code = run(words, {out, err});
  return {code, out.str(), err.str()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(FlopsCli, TableOfTheDemoModel) {
  const std::string out = flops_of({"tiny-llama"}).out;
  EXPECT_EQ(out.substr(0, out.find("\n\nconvention ")),
            "tiny-llama: 853,120 parameters, sequences of 128 tokens\n"
            "5,311,488 FLOPs per token, 679,870,464 per sequence, forward and backward\n"
            "\n"
            "component                        parameters             forward            backward    share\n"
            "embedding                            32,768                   0                   0    0.0 %\n"
            "qkv                                 131,072             262,144             524,288   14.8 %\n"
            "attention_scores                          0              66,048             132,096    3.7 %\n"
            "attention_values                          0              66,048             132,096    3.7 %\n"
            "attention_output                     65,536             131,072             262,144    7.4 %\n"
            "gate_up                             393,216             786,432           1,572,864   44.4 %\n"
            "down                                196,608             393,216             786,432   22.2 %\n"
            "head                                 32,768              65,536             131,072    3.7 %\n"
            "norms                                 1,152                   0                   0    0.0 %\n"
            "total                               853,120           1,770,496           3,540,992  100.0 %\n"
            "exact: GEMMs only, a multiply-add is 2, causal pairs counted once, no recompute\n"
            "\n"
            "--all adds what 16 other conventions count, their formulas and sources\n");
  const std::string all = flops_of({"tiny-llama", "--all"}).out;
  EXPECT_EQ(all.find("--all"), std::string::npos);
  EXPECT_NE(all.find("\n\n"
                     "convention                 GFLOP/token / exact  against exact\n"
                     "exact                           0.0053  1.0000  the reference\n"
                     "palm_total                      0.0059  1.1118  + embedding, gains; all pairs\n"),
            std::string::npos)
      << all;
}

/// What was asked for stands in the first ten lines: by hand 48.25 GFLOP * 70,000 / (8 * 989.4 TFLOP/s).
TEST(FlopsCli, TheAnswerStandsInTheFirstTenLines) {
  const auto first_ten = [](std::vector<std::string> words) {
    std::string text;
    const auto lines = lines_of(flops_of(std::move(words)).out);
    for (std::size_t i = 0; i < std::min<std::size_t>(10, lines.size()); ++i) text += lines[i] + "\n";
    return text;
  };
  const std::string rate = first_ten(
      {"llama3-8b", "--seq", "4096", "--hardware", "h100-sxm", "--gpus", "8", "--tokens-per-second", "70k"});
  EXPECT_NE(rate.find("\nMFU 42.7 % exact, 48.3 % palm_total, against the dense peak\n"), std::string::npos)
      << rate;
  const std::string budget = first_ten({"deepseek-v3", "--hardware", "B200", "--gpus", "8", "--mfu", "40%",
                                        "--tokens", "82B", "--tokens-per-step", "4Mi"});
  for (const char* word : {" FLOPs per token", "tokens/s of all GPUs", "  time ", "  GPU hours ",
                           "  iterations   19,551 of 4,194,304 "})
    EXPECT_NE(budget.find(word), std::string::npos) << word << "\n" << budget;
}

TEST(FlopsCli, ANameOfSeveralGpusIsTheUsualOneAndSaidToBe) {
  const std::pair<const char*, const char*> usual[] = {{"H100", "h100-sxm"},
                                                       {"nvidia h100", "h100-sxm"},
                                                       {"H100 80GB", "h100-sxm"},
                                                       {"A100", "a100-sxm-80gb"},
                                                       {"A100 PCIe", "a100-pcie-80gb"},
                                                       {"A800", "a800-sxm-80gb"},
                                                       {"V100 16GB", "v100-sxm2-16gb"},
                                                       {"GH200", "gh200-144gb"}};
  for (const auto& [name, id] : usual) {
    const Result result = flops_of({"llama3-8b", "--hardware", name, "--dtype", "fp16", "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out)["hardware"]["id"], id) << name;
    EXPECT_EQ(
        result.err.find("assay: note: " + std::string(name) + " is taken for " + id + "; it may also be "),
        0u)
        << result.err;
  }
  EXPECT_EQ(flops_of({"llama3-8b", "--hardware", "H100 PCIe"}).err, "");
}

TEST(FlopsCli, EveryConventionStandsWithItsFormulaAndSource) {
  const std::string out = flops_of({"llama3-8b", "--seq", "8,192", "--all"}).out;
  for (const spec::ConventionFacts& facts : spec::conventions()) {
    EXPECT_NE(out.find("\n" + std::string(facts.name) + " "), std::string::npos) << facts.name;
    EXPECT_NE(out.find(std::string(facts.formula) + "\n"), std::string::npos) << facts.name;
    EXPECT_NE(out.find(std::string(facts.source) + "\n"), std::string::npos) << facts.name;
  }
}

TEST(FlopsCli, LinesOfEveryModelFitIn100Columns) {
  for (const std::string& model : spec::model_names())
    for (const std::string& line :
         lines_of(flops_of({model, "--hardware", "gh200-144gb", "--gpus", "10000", "--mfu", "99.9%",
                            "--tokens", "900T", "--tokens-per-step", "16M", "--all"})
                      .out))
      EXPECT_LE(line.size(), 100u) << line;
}

TEST(FlopsCli, MfuOfTheFirstReportsRun) {
  // 2 x 106,979 tokens/s on two B200: 37.2 % exact, 41.8 % palm_total; half of it against the sparse peak.
  const auto json = nlohmann::json::parse(flops_of({"llama-1.36b", "--hardware", "NVIDIA B200", "--gpus", "2",
                                                    "--tokens-per-second", "213958", "--json"})
                                              .out);
  EXPECT_EQ(json["hardware"]["id"], "b200");
  EXPECT_EQ(json["hardware"]["peak_dense"], 2250e12);
  for (const auto& convention : json["conventions"]) {
    EXPECT_NEAR(convention["mfu_dense"].get<double>(), 2 * convention["mfu_sparse"].get<double>(), 1e-12);
    if (convention["name"] == "exact") {
      EXPECT_NEAR(convention["mfu_dense"].get<double>(), 7831931904.0 * 213958 / 4500e12, 1e-12);
    }
    if (convention["name"] == "palm_total") {
      EXPECT_NEAR(convention["mfu_dense"].get<double>(), 0.4177, 5e-5);
    }
  }
}

TEST(FlopsCli, BudgetByHand) {
  // 40 % of 8 x 2,250 TFLOP/s over 9,715,421,184 FLOPs: 741,090 tokens/s; 82e9 tokens: 110,648 s, 245.9 GPU
  // hours at 1,000 W: 0.246 MWh; 19,550.3 steps.
  const std::vector<std::string> words = {"qwen3-1.8b", "--hardware",        "B200",     "--gpus",
                                          "8",          "--tokens",          "82B",      "--mfu",
                                          "40%",        "--tokens-per-step", "4,194,304"};
  const std::string out = flops_of(words).out;
  EXPECT_NE(out.find("741,090 tokens/s of all GPUs"), std::string::npos) << out;
  EXPECT_NE(out.find("iterations   19,551 of 4,194,304 tokens"), std::string::npos) << out;
  EXPECT_NE(out.find("(30.74 h)"), std::string::npos) << out;
  EXPECT_NE(out.find("GPU hours    245.9 on 8 GPUs"), std::string::npos) << out;
  EXPECT_NE(out.find("energy       0.246 MWh at most"), std::string::npos) << out;
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const auto budget = nlohmann::json::parse(flops_of(with_json).out)["budget"];
  EXPECT_EQ(budget["iterations"], 19551);
  EXPECT_NEAR(budget["seconds"].get<double>(), 110647.8, 0.1);
  EXPECT_NEAR(budget["energy_j"].get<double>(), 8 * 1000 * 110647.8, 1e3);
}

TEST(FlopsCli, PowerOfASuperchipIsNotTheGpus) {
  const std::vector<std::string> words = {"llama3-8b", "--hardware", "gh200-96gb", "--tokens",
                                          "1B",        "--mfu",      "40%"};
  const std::string out = flops_of(words).out;
  EXPECT_NE(out.find("(that power is of the superchip: CPU, GPU and memory)"), std::string::npos) << out;
  EXPECT_NE(out.find("MWh at most: every superchip at 1000 W"), std::string::npos) << out;
  EXPECT_NE(out.find("that power is of the superchip: CPU, GPU and memory"), std::string::npos) << out;
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  EXPECT_EQ(nlohmann::json::parse(flops_of(with_json).out)["hardware"]["power_scope"],
            "superchip: CPU, GPU and memory");
  const std::string alone =
      flops_of({"llama3-8b", "--hardware", "h200-sxm", "--tokens", "1B", "--mfu", "40%"}).out;
  EXPECT_NE(alone.find("every GPU at 700 W"), std::string::npos) << alone;
  EXPECT_EQ(alone.find("superchip"), std::string::npos) << alone;
}

TEST(FlopsCli, ANameThatIsNotTheCountIsFlagged) {
  const std::string out = flops_of({"gpt3-1.3b"}).out;
  EXPECT_NE(out.find("its name says 1.30B parameters; counted are 1.517B, 1.17 times that\n"),
            std::string::npos)
      << out;
  EXPECT_EQ(flops_of({"llama3-8b"}).out.find("its name says"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(flops_of({"gpt3-1.3b", "--json"}).out)["nominal_parameters"], 1.3e9);
  EXPECT_TRUE(nlohmann::json::parse(flops_of({"gpt2", "--json"}).out)["nominal_parameters"].is_null());
}

TEST(FlopsCli, ARateWithoutHardwareHasTimeButNoMfu) {
  const std::string out =
      flops_of({"tiny-llama", "--tokens-per-second", "1k", "--gpus", "2", "--tokens", "7.2M"}).out;
  EXPECT_NE(out.find("time         2 h 00 min (2.00 h)"), std::string::npos) << out;
  EXPECT_NE(out.find("GPU hours    4.0 on 2 GPUs"), std::string::npos) << out;
  EXPECT_EQ(out.find("MFU"), std::string::npos);
  EXPECT_EQ(out.find("energy"), std::string::npos);
}

/// DeepSeek-V3 in small: latent attention, routed and shared experts, one multi-token block.
spec::ModelSpec small_deepseek() {
  spec::ModelSpec m = spec::find_model("tiny-llama");
  m.name = "small-deepseek", m.family = spec::Family::deepseek_v3;
  m.kv_heads = m.heads, m.head_dim = 24, m.multi_token_layers = 1;
  m.latent = spec::LatentAttention{.query_rank = 32, .key_value_rank = 16, .rope_dim = 8, .value_dim = 16};
  m.experts = spec::Experts{.count = 8, .active = 2, .width = 64, .shared_width = 64, .first_dense = 1};
  return m;
}

TEST(FlopsCli, ComponentsOfEveryModelAddUpToItsInventory) {
  for (const std::string& name : spec::model_names()) {
    const spec::ModelSpec model = spec::find_model(name);
    std::map<spec::Role, Count> roles;
    for (const spec::Parameter& parameter : spec::inventory(model).parameters)
      roles[parameter.role] += parameter.size;
    std::map<std::string, Count> lines;
    Count total;
    for (const FlopsLine& line : flops_report({.model = model, .sequence_length = 1024}).lines)
      total += lines[line.name] = line.parameters;
    EXPECT_EQ(total, spec::parameter_count(model)) << name;
    EXPECT_EQ(lines["router"], roles[spec::Role::router]) << name;
    EXPECT_EQ(lines["norms"], roles[spec::Role::norm]) << name;
    EXPECT_EQ(lines["routed_experts"],
              roles[spec::Role::expert_gate] + roles[spec::Role::expert_up] + roles[spec::Role::expert_down])
        << name;
  }
}

TEST(FlopsCli, AWindowIsPrintedAndCounted) {
  const spec::ModelSpec model = spec::find_model("mistral-7b");
  const auto printed = [&](std::int64_t T) {
    std::ostringstream table, json;
    const FlopsReport report = flops_report({.model = model, .sequence_length = T});
    print_table(report, true, table);
    print_json(report, json);
    for (const std::string& line : lines_of(table.str())) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_NE(table.str().find("window: a token sees the last 4,096 tokens, itself among them"),
              std::string::npos);
    return nlohmann::json::parse(json.str());
  };
  const auto parsed = printed(32768);
  EXPECT_EQ(parsed["window"], 4096);
  // 6 * (7,241,732,096 - 131,072,000 - 65 * 4096) + 12 * 32 * 4096 * (4096 - 4096 * 4095 / 65536)
  EXPECT_EQ(parsed["flops_per_token"], "48702259200");
  printed(999);  // pairs that are no multiple of the tokens
}

TEST(FlopsCli, AWindowIsInTheFormulaAndAgainstExact) {
  spec::ModelSpec model = spec::find_model("tiny-llama");
  const std::string full = "exact                      6 P + 6 L H E (T + 1)\n";
  for (const std::int64_t window : {0, 32, 128, 500}) {
    model.window = window;
    const FlopsReport report = flops_report({.model = model, .sequence_length = 128});
    std::ostringstream table, json;
    print_table(report, true, table);
    print_json(report, json);
    const bool shorter = window == 32;
    const std::string out = table.str();
    EXPECT_EQ(out.find(full) == std::string::npos, shorter) << window;
    EXPECT_EQ(out.find("exact                      6 P + 6 L H E w (2 T - w + 1) / T\n") != std::string::npos,
              shorter);
    EXPECT_EQ(out.find("- diagonal's half*\n") != std::string::npos, shorter) << out;
    EXPECT_EQ(out.find("\n* also counts pairs outside the window") != std::string::npos, shorter);
    EXPECT_NE(out.find("  the reference\n"), std::string::npos);
    EXPECT_NE(out.find("- attention; + embedding, gains\n"), std::string::npos) << "it counts no pair";
    // 6 * 819,200 + 6 * 4 * 128 * 129, or 6 * 819,200 + 6 * 4 * 128 * 32 * (2 * 128 - 32 + 1) / 128.
    const auto parsed = nlohmann::json::parse(json.str());
    EXPECT_EQ(parsed["flops_per_token"], shorter ? "5088000" : "5311488") << window;
    for (const auto& convention : parsed["conventions"]) {
      const std::string name = convention["name"], differs = convention["differs"];
      EXPECT_EQ(differs.ends_with("; pairs outside the window"),
                shorter && name != "exact" && !name.starts_with("6n"))
          << name;
    }
  }
}

TEST(FlopsCli, SparseModelsAddUpAndStateWhatIsActive) {
  const FlopsReport report = flops_report({.model = small_deepseek(), .sequence_length = 128});
  Count parameters, flops;
  for (const FlopsLine& line : report.lines) {
    parameters += line.parameters;
    flops += line.forward + line.backward;
  }
  EXPECT_EQ(parameters, report.parameters.total);
  EXPECT_EQ(flops, report.flops.per_token());
  std::ostringstream table, json;
  print_table(report, true, table);
  print_json(report, json);
  EXPECT_NE(table.str().find(" active per token"), std::string::npos);
  EXPECT_NE(table.str().find("multi-token blocks, in megatron's number alone: "), std::string::npos);
  EXPECT_NE(table.str().find("does not apply: it knows no mixture of experts"), std::string::npos);
  for (const std::string& line : lines_of(table.str())) EXPECT_LE(line.size(), 100u) << line;
  const auto parsed = nlohmann::json::parse(json.str());
  EXPECT_EQ(parsed["active_parameters"], report.parameters.active.to_string());
  EXPECT_EQ(parsed["conventions"].size(), spec::conventions().size());
  EXPECT_TRUE(parsed["conventions"][5]["flops_per_token"].is_null());
}

TEST(FlopsCli, ImpossibleConventionsAreMarked) {
  // 95 % by exact is above 100 % for those that count more.
  const std::string out =
      flops_of({"llama3-8b", "--seq", "8192", "--hardware", "H200", "--mfu", "95%", "--all"}).out;
  EXPECT_NE(out.find("112.7 %!"), std::string::npos) << out;
  EXPECT_NE(out.find("! above 100 %: impossible"), std::string::npos);
}

TEST(FlopsCli, JsonHoldsTheSameCountsAsText) {
  const auto json = nlohmann::json::parse(flops_of({"llama-1.36b", "--seq", "1024", "--json"}).out);
  EXPECT_EQ(json["parameters"], "1294159104");
  EXPECT_EQ(json["sequence_length"], 1024);
  long long sum = 0, parameters = 0;
  for (const auto& component : json["components"]) {
    sum += std::stoll(component["forward_per_token"].get<std::string>()) +
           std::stoll(component["backward_per_token"].get<std::string>());
    parameters += std::stoll(component["parameters"].get<std::string>());
  }
  EXPECT_EQ(std::to_string(sum), json["flops_per_token"].get<std::string>());
  EXPECT_EQ(std::to_string(parameters), json["parameters"].get<std::string>());
}

/// The one line on stderr for words that must fail with exit code 2 and print nothing else.
std::string mistake(std::vector<std::string> words) {
  const Result result = flops_of(words);
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_LE(result.err.size(), 1000u) << result.err;
  return result.err;
}

TEST(FlopsCli, MistakesAreExplained) {
  const auto says = [](std::vector<std::string> words, const std::string& what) {
    const std::string line = mistake(words);
    EXPECT_NE(line.find(what), std::string::npos) << line;
  };
  says({}, "takes one MODEL");
  says({"llama3-8b", "tiny-llama"}, "takes one MODEL");
  says({"lama3-8b"}, "llama3-8b");
  says({"llama3-8b", "--hardware", "H900"}, "h100");
  says({"llama3-8b", "--hardware", "B20"}, "b200");
  says({"llama3-8b", "--hardware", "Tesla V100-SXM2-16GB"}, "no document");
  says({"llama3-8b", "--hardware", "B200", "--dtype", "bf17"}, "--dtype");
  says({"llama3-8b", "--hardware", "B200", "--tokens-per-second", "9G"}, "more than the hardware can do");
  says({"llama3-8b", "--mfu", "40%"}, "needs --hardware");
  says({"llama3-8b", "--hardware", "B200", "--mfu", "40"}, "such as 40%");
  says({"llama3-8b", "--hardware", "B200", "--mfu", "0%"}, "above 0");
  says({"llama3-8b", "--hardware", "B200", "--mfu", "101%"}, "at most 100 %");
  says({"llama3-8b", "--hardware", "B200", "--mfu", "40%", "--tokens-per-second", "1"}, "give one of them");
  says({"llama3-8b", "--tokens", "82B"}, "needs a rate");
  says({"llama3-8b", "--tokens-per-step", "1"}, "give --tokens too");
  says({"llama3-8b", "--gpus", "8"}, "--gpus needs");
  says({"llama3-8b", "--dtype", "bf16"}, "give --hardware too");
}

TEST(FlopsCli, NumbersThatAreNone) {
  const std::string endless(1000000, '9');
  for (const std::string& bad :
       {std::string("0"), std::string("-1"), std::string("nan"), std::string("inf"), std::string("1e999"),
        std::string("82X"), std::string(""), std::string("1.5.2"), endless}) {
    EXPECT_NE(mistake({"tiny-llama", "--seq", bad}).find("--seq"), std::string::npos);
    EXPECT_NE(mistake({"tiny-llama", "--hardware", "B200", "--gpus", bad}).find("--gpus"), std::string::npos);
    EXPECT_NE(mistake({"tiny-llama", "--tokens-per-second", bad}).find("--tokens-per-second"),
              std::string::npos);
    EXPECT_NE(mistake({"tiny-llama", "--tokens-per-second", "1", "--tokens", bad}).find("--tokens"),
              std::string::npos);
    EXPECT_NE(mistake({"tiny-llama", "--hardware", "B200", "--mfu", bad}).find("--mfu"), std::string::npos);
  }
  EXPECT_NE(mistake({"tiny-llama", "--seq", "1.5"}).find("integer"), std::string::npos);
  mistake({"tiny-llama", "--hardware", endless});
  mistake({endless});
}

}  // namespace
}  // namespace assay::impl::cli::flops_test
