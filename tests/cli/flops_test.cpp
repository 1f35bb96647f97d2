// labels: unit cli
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "impl/cli/verb.hpp"

namespace assay::impl::cli {
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

TEST(FlopsCli, TableOfTheDemoModel) {
  EXPECT_EQ(flops_of({"tiny-llama"}).out,
            "tiny-llama: 853,120 parameters, sequences of 128 tokens\n"
            "\n"
            "component                 parameters             forward            backward    share\n"
            "embedding                     32,768                   0                   0    0.0 %\n"
            "qkv                          131,072             262,144             524,288   14.8 %\n"
            "attention_scores                   0              66,048             132,096    3.7 %\n"
            "attention_values                   0              66,048             132,096    3.7 %\n"
            "attention_output              65,536             131,072             262,144    7.4 %\n"
            "gate_up                      393,216             786,432           1,572,864   44.4 %\n"
            "down                         196,608             393,216             786,432   22.2 %\n"
            "head                          32,768              65,536             131,072    3.7 %\n"
            "norms                          1,152                   0                   0    0.0 %\n"
            "total                        853,120           1,770,496           3,540,992  100.0 %\n"
            "\n"
            "5,311,488 FLOPs per token, 679,870,464 per sequence, forward and backward\n"
            "exact: matrix products only, a multiply-add is 2, causal pairs counted once, no recompute\n");
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
  EXPECT_EQ(std::to_string(sum), json["flops_per_token"]);
  EXPECT_EQ(std::to_string(parameters), json["parameters"]);
}

TEST(FlopsCli, MistakesAreExplained) {
  EXPECT_EQ(flops_of({}).code, 2);
  EXPECT_NE(flops_of({}).err.find("takes one MODEL"), std::string::npos);
  EXPECT_EQ(flops_of({"lama3-8b"}).code, 2);
  EXPECT_NE(flops_of({"lama3-8b"}).err.find("llama3-8b"), std::string::npos);
}

}  // namespace
}  // namespace assay::impl::cli
