// labels: unit
#include "spec/model/model_spec.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "spec/error.hpp"
#include "spec/model/inventory.hpp"

namespace assay::spec {
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
  EXPECT_GE(model_names().size(), 6u);
  for (const std::string& name : model_names()) {
    EXPECT_NO_THROW(check(find_model(name))) << name;
    EXPECT_EQ(find_model(name).name, name);
  }
}

TEST(ModelSpec, CountsTheParametersThatWerePublished) {
  EXPECT_EQ(parameter_count(find_model("llama-1.36b")), Count(1'294'159'104));
  EXPECT_EQ(parameter_count(find_model("llama3-8b")), Count(8'030'261'248));
  EXPECT_EQ(parameter_count(find_model("qwen3-0.6b")), Count(596'049'920));
  // 49,152 = 24 * 2048 above the count that its own runs print (spec/models/qwen3-1.8b.toml).
  EXPECT_EQ(parameter_count(find_model("qwen3-1.8b")), Count(1'829'140'480) + 24 * 2048);
  EXPECT_EQ(parameter_count(find_model("tiny-llama")), Count(853'120));
  EXPECT_EQ(parameter_count(find_model("tiny-qwen3")), Count(1'017'472));
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

}  // namespace
}  // namespace assay::spec
