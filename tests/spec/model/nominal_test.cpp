// labels: unit
#include "spec/model/nominal.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace assay::spec::nominal_test {
namespace {

TEST(NominalSpec, SizesInNames) {
  EXPECT_DOUBLE_EQ(nominal_parameters("gpt3-1.3b").value_or(0), 1.3e9);
  EXPECT_DOUBLE_EQ(nominal_parameters("Qwen3-30B-A3B").value_or(0), 30e9);
  EXPECT_DOUBLE_EQ(nominal_parameters("gpt3-125m").value_or(0), 125e6);
  EXPECT_DOUBLE_EQ(nominal_parameters("OLMoE-1B-7B-0924").value_or(0), 7e9);
  EXPECT_DOUBLE_EQ(nominal_parameters("llama_8B_instruct").value_or(0), 8e9);
  for (const char* name :
       {"", "b", "gpt2", "gpt2-xl", "mixtral-8x7b", "tiny-llama", "-b", "0b-x", "1.2.3b", "3e9b", "nanb"})
    EXPECT_FALSE(nominal_parameters(name)) << name;
  EXPECT_DOUBLE_EQ(nominal_parameters("-1b").value_or(0), 1e9);  // the hyphen parts, it is no sign
}

TEST(NominalSpec, MisnamedModelsAreTheseOnly) {
  std::set<std::string> found;
  for (const std::string& name : model_names())
    if (misnamed(find_model(name))) found.insert(name);
  // 1.517B, 14.84B, 8.03B, 9.23B, 7.62B and 14.77B are counted.
  EXPECT_EQ(found, (std::set<std::string>{"gpt3-1.3b", "kempnerforge-13b", "kempnerforge-7b", "moe-4b",
                                          "qwen2.5-7b", "qwen3-14b"}));
}

TEST(NominalSpec, TheToleranceIsOfTheName) {
  ModelSpec m = find_model("llama3-8b");  // 8,030,261,248
  m.name = "llama-7.65b";                 // 4.97 %
  EXPECT_FALSE(misnamed(m));
  m.name = "llama-7.64b";  // 5.11 %
  EXPECT_DOUBLE_EQ(misnamed(m).value_or(0), 7.64e9);
  m.name = "llama-8.46b";  // 5.08 %
  EXPECT_DOUBLE_EQ(misnamed(m).value_or(0), 8.46e9);
  m.name = "llama-8.45b";  // 4.97 %
  EXPECT_FALSE(misnamed(m));
}

}  // namespace
}  // namespace assay::spec::nominal_test
