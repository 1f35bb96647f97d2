// labels: unit property
#include "spec/model/fields.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "spec/flops/exact.hpp"
#include "spec/model/inventory.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/model_changes.hpp"
#include "tests/support/paths.hpp"

namespace assay::spec::fields_test {
namespace {

using Listed = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

Listed tensors_of(const ModelSpec& model) {
  Listed all;
  for (const Inventory& list : {inventory(model), multi_token_inventory(model)})
    for (const Parameter& parameter : list.parameters) all.emplace_back(parameter.name, parameter.shape);
  return all;
}
Count parameters_of(const ModelSpec& model) {
  const ParameterCounts counts = parameter_counts(model);
  return counts.total + counts.multi_token;
}
Count flops_of(const ModelSpec& model) {
  return exact_flops(model, 16).per_sequence() + multi_token_flops(model, 16).per_sequence();
}

TEST(ModelFields, EachMovesTheCountsThatReadIt) {
  tests::for_each_change(
      tests::changed_model(), [](const std::string& field, const ModelSpec& before, const ModelSpec& after,
                                 const std::string&, unsigned moves) {
        SCOPED_TRACE(field);
        EXPECT_NE(before, after);
        EXPECT_EQ(tensors_of(before) != tensors_of(after), (moves & tests::tensors) != 0);
        EXPECT_EQ(parameters_of(before) != parameters_of(after), (moves & tests::parameters) != 0);
        EXPECT_EQ(flops_of(before) != flops_of(after), (moves & tests::flops) != 0);
        EXPECT_EQ(model_from_toml(to_toml(after), "written"), after);
      });
}

RC_GTEST_PROP(ModelFields, EachIsComputedByTheTrainerOrRefusedByName, ()) {
  const ModelSpec model = tests::draw_model();
  RC_ASSERT(untrainable_feature(model).empty());
  tests::for_each_change(model, [](const std::string& field, const ModelSpec&, const ModelSpec& after,
                                   const std::string& refusal, unsigned) {
    const std::string said = untrainable_feature(after);
    if (said.empty() != refusal.empty() || said.find(refusal) == std::string::npos)
      RC_FAIL(field + ": refused as \"" + said + "\", not as \"" + refusal + "\"");
  });
}

/// A described model trains only when each of its fields is one that the trainer computes: take those over
/// into a model that trains, and it is the same model.
RC_GTEST_PROP(ModelFields, ADescribedModelTrainsOnlyWithinTheAllowList, ()) {
  const ModelSpec drawn = tests::draw_described_model();
  ModelSpec computed;
  for_each(tests::changes::of_model, [&](const auto& entry) {
    if (std::string(entry.said.refusal).empty()) computed.*entry.member = drawn.*entry.member;
  });
  // Of these fields some values are computed and others are not.
  if (drawn.family == Family::gpt2) computed.family = Family::llama;
  computed.mlp = gated(drawn.mlp) ? drawn.mlp : Mlp::swiglu;
  RC_CLASSIFY(drawn == computed);
  RC_ASSERT(untrainable_feature(drawn).empty() == (drawn == computed));
}

/// Lines of a part's fields as spec/model/hugging_face.md has them.
template <class Part>
std::string lines_of_page(const std::string& prefix) {
  std::string text;
  for_each(fields<Part>, [&](const auto& field) {
    using T = std::remove_cvref_t<decltype(Part{}.*field.member)>;
    const auto shown = [](const auto& value) {
      if constexpr (std::is_same_v<T, bool>)
        return std::string(value ? "true" : "false");
      else if constexpr (std::is_enum_v<T>)
        return "`" + std::string(to_string(value)) + "`";
      else
        return json_number(static_cast<double>(value));
    };
    std::string keys;
    for (std::size_t i = 0; i < field.config.size; ++i) {
      const auto& key = field.config.all[i];
      std::string names;
      key.each_key([&](const std::string& name) { names += (names.empty() ? "`" : " or `") + name + "`"; });
      if constexpr (std::is_scalar_v<T>)
        if (key.otherwise) names += (names.empty() ? "" : ", else ") + shown(*key.otherwise);
      keys += (i == 0 ? "" : "; ") + (*key.types == 0 ? "" : std::string(key.types) + ": ") + names;
    }
    const std::string by = field.computed.reference_ahead ? "by the trainer: " : "";
    text += "| " + prefix + field.name + " | " + keys + " | " + by + field.computed.feature + " |\n";
  });
  return text;
}

/// A difference is accepted with ASSAY_REGENERATE=1.
TEST(ModelFields, ThePageOfConfigJsonListsEach) {
  const std::string path = tests::source_dir() + "/spec/model/hugging_face.md",
                    head = "|---|---|---|\n| name |", text = read_file(path, file_limits::model);
  const std::size_t begin = text.find(head) + 14, end = text.find("\n\n", begin) + 1;
  ASSERT_LT(begin, end);
  const std::string lines = lines_of_page<ModelSpec>("") + lines_of_page<RopeScaling>("rope_scaling.") +
                            lines_of_page<Experts>("experts.") +
                            lines_of_page<LatentAttention>("latent_attention.");
  if (std::getenv("ASSAY_REGENERATE") != nullptr)
    std::ofstream(path) << text.substr(0, begin) << lines << text.substr(end);
  else
    EXPECT_EQ(text.substr(begin, end - begin), lines);
}

/// Adds to `seen` which fields of `now` differ from those of `first`.
template <class Part>
void differing(const Part& first, const Part& now, const std::string& prefix,
               std::map<std::string, bool>& seen) {
  for_each(fields<Part>, [&](const auto& field) {
    seen[prefix + field.name] |= !(first.*field.member == now.*field.member);
  });
}
template <class Part>
void differing(std::optional<Part>& first, const std::optional<Part>& now, const std::string& prefix,
               std::map<std::string, bool>& seen) {
  if (!first) first = now;
  if (now) differing(*first, *now, prefix, seen);
}

TEST(ModelFields, DrawnModelsVaryEveryField) {
  std::map<std::string, bool> seen;
  const auto drawn = [](std::uint64_t seed) {
    return rc::gen::exec([] { return tests::draw_described_model(); })(rc::Random(seed), 100).value();
  };
  const ModelSpec first = drawn(0);
  auto scaling = first.rope_scaling;
  auto experts = first.experts;
  auto latent = first.latent;
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    const ModelSpec now = drawn(seed);
    differing(first, now, "", seen);
    differing(scaling, now.rope_scaling, "rope_scaling.", seen);
    differing(experts, now.experts, "experts.", seen);
    differing(latent, now.latent, "latent_attention.", seen);
  }
  EXPECT_EQ(seen.size(), 28u + 10 + 12 + 6);
  for (const auto& [field, varies] : seen) EXPECT_TRUE(varies) << field << " is never drawn (draw_model.hpp)";
}

}  // namespace
}  // namespace assay::spec::fields_test
