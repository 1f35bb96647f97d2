// labels: unit property
#include "tests/support/tiny_models.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "spec/model/fields.hpp"

// RC_ASSERT takes its expression apart with overloaded operators, which evaluate both sides of && and ||:
// those conditions have parentheses of their own.

namespace assay::tests::tiny_models_test {
namespace {

using reference::Batch;

TEST(TinyModels, DrawsReachEveryKindOfModel) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto model = tiny_model(seed);
    EXPECT_EQ(model, tiny_model(seed));
    EXPECT_NO_THROW(spec::check(model)) << describe(model);
    seen.insert(std::string(to_string(model.family)));
    seen.insert(model.tied_embeddings ? "tied" : "untied");
    seen.insert(std::to_string(model.layers) + " layers");
    seen.insert(std::to_string(model.heads / model.kv_heads) + " heads a group");
    if (model.width % 2 == 1) seen.insert("odd width");
    if (model.rope_scaling) seen.insert("scaled rope");
    seen.insert(std::string(to_string(model.mlp)));
    if (model.qkv_bias) seen.insert(model.qk_norm ? "biases before qk_norm" : "biases");
    if (model.heads * model.head_dim != model.width) seen.insert("H*E unlike D");
  }
  EXPECT_EQ(seen.size(), 3u + 2 + 3 + 3 + 3 + 2 + 2);
}

TEST(TinyModels, DrawsVaryEveryFieldThatTheTrainerComputes) {
  std::set<std::string> constant;
  spec::for_each(spec::model_fields, [&](const auto& field) {
    bool varies = false;
    for (std::uint64_t seed = 1; seed < 100; ++seed)
      varies |= !(tiny_model(0).*field.member == tiny_model(seed).*field.member);
    if (!varies) constant.insert(field.name);
  });
  // The context bounds sequences and changes no number; the others do not train (spec/model/fields.hpp).
  EXPECT_EQ(constant,
            (std::set<std::string>{"context", "norm", "positions", "output_bias", "mlp_bias", "norm_bias",
                                   "experts", "latent_attention", "multi_token_layers"}));
}

TEST(TinyModels, CornersAreModelsWithNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const auto& models : {corner_models(), latent_models()})
    for (const auto& model : models) {
      EXPECT_NO_THROW(spec::check(model)) << describe(model);
      EXPECT_TRUE(names.insert(model.name).second) << model.name;
    }
  EXPECT_GE(names.size(), 8u);
}

TEST(TinyModels, DrawsReachEveryKindOfBatch) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto batch = tiny_batch(tiny_model(seed), seed);
    const auto valid = batch.valid_tokens();
    seen.insert(valid == batch.B * batch.T ? "all valid" : valid == 1 ? "one valid" : "some valid");
    for (const auto& row : micro_batches(batch, 1)) {
      if (row.valid_tokens() == 0) seen.insert("a sequence without a target");
      if (row.documents.empty()) continue;
      seen.insert("documents");
      if (row.documents.front() != 0) seen.insert("empty first document");
      for (std::size_t t = 1; t < row.documents.size(); ++t)
        if (row.documents[t] > row.documents[t - 1] + 1) seen.insert("empty document");
    }
  }
  EXPECT_EQ(seen.size(), 7u);
}

RC_GTEST_PROP(TinyModels, BatchesAreWellFormed, (std::uint64_t seed)) {
  const auto model = tiny_model(seed);
  const auto batch = tiny_batch(model, seed + 1);
  const auto tokens = static_cast<std::size_t>(batch.B * batch.T);
  RC_ASSERT(
      (batch.ids.size() == tokens && batch.targets.size() == tokens && batch.positions.size() == tokens));
  RC_ASSERT((batch.documents.empty() || batch.documents.size() == tokens));
  RC_ASSERT(batch.valid_tokens() >= 1);
  for (std::size_t n = 0; n < tokens; ++n) {
    RC_ASSERT((0 <= batch.ids[n] && batch.ids[n] < model.vocab));
    RC_ASSERT(
        (batch.targets[n] == Batch::ignored || (0 <= batch.targets[n] && batch.targets[n] < model.vocab)));
    const bool first = n % static_cast<std::size_t>(batch.T) == 0;
    const bool restarts = first || (!batch.documents.empty() && batch.documents[n] > batch.documents[n - 1]);
    RC_ASSERT(batch.positions[n] == (restarts ? 0 : batch.positions[n - 1] + 1));
    RC_ASSERT((first || batch.documents.empty() || batch.documents[n] >= batch.documents[n - 1]));
  }
}

RC_GTEST_PROP(TinyModels, MicroBatchesHoldEverySequenceOnceInOrder, (std::uint64_t seed)) {
  const auto batch = tiny_batch(tiny_model(seed), seed);
  Batch joined;
  for (const auto& piece : micro_batches(batch, *rc::gen::inRange<std::int64_t>(1, 5))) {
    RC_ASSERT((piece.T == batch.T && piece.B >= 1));
    joined.B += piece.B;
    joined.ids.insert(joined.ids.end(), piece.ids.begin(), piece.ids.end());
    joined.targets.insert(joined.targets.end(), piece.targets.begin(), piece.targets.end());
    joined.documents.insert(joined.documents.end(), piece.documents.begin(), piece.documents.end());
    joined.positions.insert(joined.positions.end(), piece.positions.begin(), piece.positions.end());
  }
  RC_ASSERT((joined.B == batch.B && joined.ids == batch.ids && joined.targets == batch.targets));
  RC_ASSERT((joined.documents == batch.documents && joined.positions == batch.positions));
}

}  // namespace
}  // namespace assay::tests::tiny_models_test
