// labels: unit
#include "impl/data/validation_set.hpp"

#include <gtest/gtest.h>

#include <set>

#include "impl/data/grammar_data.hpp"
#include "impl/data/token_data.hpp"
#include "spec/error.hpp"
#include "tests/impl/data/token_bytes.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::data::validation_set_test {
namespace {

constexpr std::int64_t T = 4;

spec::ModelSpec bytes() {
  spec::ModelSpec model;
  model.vocab = 256;
  return model;
}

/// A share of 40 samples of the grammar's text.
spec::RunConfig of_grammar(double share) {
  spec::RunConfig config;
  config.sequence_length = T, config.seed = 7, config.eval_share = share;
  return config;
}
std::shared_ptr<const SampleSource> grammar() { return std::make_shared<GrammarData>(7, T, 40); }

spec::RunConfig of_files(const std::vector<std::string>& paths) {
  spec::RunConfig config;
  config.sequence_length = T;
  config.data_paths = {"train.bin"}, config.data_dtype = "uint16", config.eval_paths = paths;
  return config;
}

std::string file_of(const tests::Scratch& scratch, const std::string& name,
                    const std::vector<std::uint32_t>& ids) {
  return scratch.write(name, tests::token_bytes(ids, TokenType::uint16)).string();
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ValidationSetImpl, AShareIsWhatNoStepReads) {
  spec::RunConfig config = of_grammar(0.2);
  config.eval_sequences = 0;
  const ValidationSet set(config, bytes(), grammar());
  EXPECT_EQ(set.sequences(), 8);
  EXPECT_EQ(set.description(), "8 of 8 held-out samples of 4");
  const spec::data::SampleOrder order{.seed = 7, .samples = 40, .sequences = 32, .held_out = 8};
  std::set<std::int64_t> held_out;
  for (std::int64_t i = 0; i < set.sequences(); ++i) held_out.insert(set.sample(i));
  EXPECT_EQ(held_out.size(), 8u);
  for (const std::int64_t sample : spec::data::step_samples(order, 0))
    EXPECT_FALSE(held_out.contains(sample));
  EXPECT_EQ(set.batch(), 8) << "no pass is longer than the set";
  EXPECT_EQ(set.bytes_per_token(), 1) << "the grammar's text is bytes";
}

TEST(ValidationSetImpl, ASampleIsReadAsInTrainingAndTheRestIsFilledUp) {
  spec::RunConfig config = of_grammar(0.2);
  config.eval_sequences = 3;
  const ValidationSet set(config, bytes(), grammar());
  EXPECT_EQ(set.batch(), 3);
  const MicroBatch first = set.read(0), second = set.read(2), beyond = set.read(3);
  const MicroBatch wanted =
      read_micro_batch(*grammar(), std::vector{set.sample(0), set.sample(1), set.sample(2)}, {});
  EXPECT_EQ(first.inputs, wanted.inputs);
  EXPECT_EQ(first.targets, wanted.targets);
  EXPECT_EQ(first.valid_tokens, 3 * T);
  EXPECT_EQ(second.B, 3);
  EXPECT_EQ(second.valid_tokens, T);
  EXPECT_TRUE(std::equal(second.inputs.begin(), second.inputs.begin() + T, wanted.inputs.begin() + 2 * T));
  EXPECT_EQ(std::count(second.targets.begin() + T, second.targets.end(), ignore_index), 2 * T);
  EXPECT_EQ(beyond.valid_tokens, 0);
  EXPECT_EQ(beyond.inputs.size(), first.inputs.size());
}

TEST(ValidationSetImpl, FilesAreReadWithTheirDocuments) {
  const tests::Scratch scratch;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 21; ++i) ids.push_back(i % 5);
  spec::RunConfig config = of_files({file_of(scratch, "val.bin", ids)});
  config.end_of_document = 3, config.eval_sequences = 2;
  const ValidationSet set(config, bytes(), grammar());
  EXPECT_EQ(set.sequences(), 2);
  EXPECT_EQ(set.sample(1), 2) << "evenly spread over 5 samples";
  const TokenData file({config.eval_paths[0]}, TokenType::uint16, 256, T);
  const MicroBatch wanted = read_micro_batch(file, std::vector<std::int64_t>{0, 2}, 3);
  const MicroBatch batch = set.read(0);
  EXPECT_EQ(batch.inputs, wanted.inputs);
  EXPECT_EQ(batch.documents, wanted.documents);
  EXPECT_EQ(batch.positions, wanted.positions);
  EXPECT_EQ(batch.document_offsets, wanted.document_offsets);
  EXPECT_FALSE(set.bytes_per_token()) << "token files do not say it";
}

// Parts of any number of ranks add up to one hash, which sees every id and the order of sequences.
TEST(ValidationSetImpl, TheHashIsThatOfTheSetHoweverItIsDealt) {
  const auto hash = [](const spec::RunConfig& config, std::int64_t ranks) {
    const ValidationSet set(config, bytes(), grammar());
    std::uint64_t sum = 0;
    std::int64_t valid = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto part = set.scan(rank, ranks);
      sum += static_cast<std::uint64_t>(part.hash), valid += part.valid_tokens;
    }
    EXPECT_EQ(valid, set.sequences() * T) << ranks;
    return sum;
  };
  spec::RunConfig config = of_grammar(0.5);
  const std::uint64_t whole = hash(config, 1);
  config.tensor_ranks = 5;  // another number of sequences in a pass
  EXPECT_EQ(hash(config, 1), whole);
  for (const std::int64_t ranks : {2, 3, 7}) EXPECT_EQ(hash(config, ranks), whole) << ranks;

  const tests::Scratch scratch;
  const std::uint64_t here = hash(of_files({file_of(scratch, "a", {1, 2, 3, 4, 5, 6, 7, 8, 9})}), 1);
  EXPECT_EQ(hash(of_files({file_of(scratch, "b", {1, 2, 3, 4, 5, 6, 7, 8, 9})}), 2), here);
  EXPECT_NE(hash(of_files({file_of(scratch, "c", {1, 2, 3, 4, 5, 6, 7, 8, 8})}), 1), here);
  EXPECT_NE(
      hash(of_files({file_of(scratch, "d", {5, 6, 7, 8, 9}), file_of(scratch, "e", {1, 2, 3, 4, 5})}), 1),
      here);
}

TEST(ValidationSetImpl, WhatHoldsNoSequenceIsRefused) {
  const auto refused = [](double share) {
    return refusal([&] { ValidationSet(of_grammar(share), bytes(), grammar()); });
  };
  EXPECT_EQ(refused(0.01),
            "eval.share = 0.01 of the data's 40 samples holds out none: raise it to at least 0.025, or name "
            "files in eval.paths");
  EXPECT_EQ(refused(0.99),
            "eval.share = 0.99 of the data's 40 samples holds out all: lower it to less than 0.9875, or name "
            "files in eval.paths");
  EXPECT_EQ(refused(0.025), "");
  EXPECT_EQ(refused(0.975), "");
  const tests::Scratch scratch;
  const std::string path = file_of(scratch, "val.bin", {1, 2, 3, 4});
  EXPECT_NE(refusal([&] {
              ValidationSet(of_files({path}), bytes(), grammar());
            }).find("has 4 tokens, one sample of sequence length 4 needs 5"),
            std::string::npos);
}

TEST(ValidationSetImpl, AnIdOutsideTheVocabularyIsNamedByTheScan) {
  const tests::Scratch scratch;
  const std::string path = file_of(scratch, "val.bin", {1, 2, 3, 4, 256});
  const ValidationSet set(of_files({path}), bytes(), grammar());
  const std::string text = refusal([&] { static_cast<void>(set.scan(0, 1)); });
  EXPECT_NE(text.find(path), std::string::npos) << text;
  EXPECT_NE(text.find("has id 256 at token 4"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::impl::data::validation_set_test
