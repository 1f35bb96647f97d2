// labels: unit fault
// A rank that would train something else is named before any of them does.
#include "impl/run/start/start_agreement.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/data/grammar_data.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::start_agreement_test {
namespace {

/// Documents end in the middle of each sample.
struct Documents : data::GrammarData {
  using GrammarData::GrammarData;
  std::int64_t end = 7;
  std::optional<std::vector<std::int64_t>> document_ends(std::int64_t) const override { return {{end}}; }
};

/// The error of each rank, where rank `odd` has another configuration, or other data.
std::string refusal(int ranks, int odd,
                    const std::function<void(spec::RunConfig&, std::uint64_t& data_seed)>& change,
                    std::int64_t end_of_odd = 7, double rope_theta_of_odd = 10000) {
  std::mutex mutex;
  std::vector<std::string> texts;
  tests::on_thread_ranks(ranks, [&](Communicator& communicator) {
    spec::RunConfig config;
    std::uint64_t data_seed = 5;
    if (communicator.rank() == odd) change(config, data_seed);
    Identity identity{.model = spec::find_model("tiny-llama"), .files = {}};
    if (communicator.rank() == odd) identity.model->rope_theta = rope_theta_of_odd;
    Documents source(data_seed, config.sequence_length, 4096);
    if (communicator.rank() == odd) source.end = end_of_odd;
    std::string text = "agreed";
    try {
      require_agreement(start_facts(config, identity, source, {}), communicator);
    } catch (const AgreedError& error) {
      text = error.what();
    }
    const std::scoped_lock lock(mutex);
    texts.push_back(text);
  });
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]) << "ranks are told different things";
  return texts[0];
}

TEST(StartAgreementImpl, EqualRanksAgree) {
  EXPECT_EQ(refusal(3, -1, {}), "agreed");
  EXPECT_EQ(refusal(1, 0, [](auto& config, auto&) { config.seed = 9; }), "agreed");
}

TEST(StartAgreementImpl, ARankWithAnotherDataOrderIsNamed) {
  const std::string text = refusal(3, 2, [](auto& config, auto&) { config.seed = 9; });
  EXPECT_NE(text.find("rank 2 differs from the others: train.seed is 9 there, 20251121 on rank 0"),
            std::string::npos)
      << text;
}

/// Hosts may hold other files under one name.
TEST(StartAgreementImpl, ARankWithAnotherModelOfTheSameNameIsNamed) {
  const std::string text = refusal(
      3, 1, [](auto&, auto&) {}, 7, 20000);
  EXPECT_NE(text.find("rank 1 differs from the others: rope_theta of the model is 20000.0 there, 10000.0 on "
                      "rank 0"),
            std::string::npos)
      << text;
}

TEST(StartAgreementImpl, ARankWithOtherSettingsIsNamed) {
  EXPECT_NE(
      refusal(4, 0, [](auto& config, auto&) { config.learning_rate = 1e-3; })
          .find("rank 0 differs from the others: optimizer.learning_rate is 0.001 there, 0.003 on rank 1"),
      std::string::npos);
  EXPECT_NE(refusal(2, 1, [](auto& config, auto&) { config.data_parallel = spec::DataParallel::zero1; })
                .find("rank 1 differs from the others: parallel.data"),
            std::string::npos);
}

TEST(StartAgreementImpl, ARankWithOtherTokensIsNamed) {
  EXPECT_NE(refusal(3, 1, [](auto&, std::uint64_t& seed) { seed = 6; }).find("rank 1 differs"),
            std::string::npos);
}

TEST(StartAgreementImpl, ARankWithOtherDocumentEndsIsNamed) {
  EXPECT_NE(refusal(
                3, 1, [](auto&, auto&) {}, 8)
                .find("rank 1 differs from the others: the content of the "
                      "first samples"),
            std::string::npos);
}

TEST(StartAgreementImpl, ThreadsAreEachHostsOwn) {
  EXPECT_EQ(refusal(2, 1, [](auto& config, auto&) { config.threads = 3; }), "agreed");
}

/// Of rank 1, which continues from `there` where rank 0 continues from `here` (empty: from nothing).
std::string refused_resume(const std::string& here, const std::string& there) {
  std::mutex mutex;
  std::string text = "agreed";
  tests::on_thread_ranks(2, [&](Communicator& communicator) {
    const spec::RunConfig config;
    const data::GrammarData source(5, config.sequence_length, 4096);
    try {
      require_agreement(start_facts(config, {}, source, communicator.rank() == 1 ? there : here),
                        communicator);
    } catch (const AgreedError& error) {
      const std::scoped_lock lock(mutex);
      text = error.what();
    }
  });
  return text;
}

// As on two hosts that share no disk: each rank looks for checkpoints in its own folder.
TEST(StartAgreementImpl, ARankThatContinuesFromElsewhereIsNamed) {
  spec::ModelSpec model;
  model.name = "tiny", model.vocab = 11, model.width = 8, model.layers = 1, model.heads = 2;
  model.kv_heads = 1, model.head_dim = 4, model.ffn = 12, model.context = 8;
  tests::Scratch scratch;
  const auto saved = [&](const std::string& host, std::int64_t step, float weight) {
    const ParameterBuffers buffers = allocate(model, Dtype::f32, at::kCPU);
    buffers.master.fill_(weight);
    return checkpoint::save((scratch.path() / host).string(), buffers,
                            {.step = step, .tokens = 0, .config = {}}, 9)
        .path;
  };
  const std::string first = saved("a", 1, 1), second = saved("a", 2, 1);
  EXPECT_EQ(refused_resume(first, saved("copy", 1, 1)), "agreed");
  const std::string none = refused_resume(first, "");
  EXPECT_NE(none.find("rank 1 differs from the others: the checkpoint to continue from is none there, of "
                      "step 1 (hash "),
            std::string::npos)
      << none;
  EXPECT_NE(refused_resume(first, second).find("of step 2 (hash "), std::string::npos);
  EXPECT_NE(refused_resume(first, saved("other", 1, 2)), "agreed") << "the same step of another run";
}

TEST(StartAgreementImpl, AnotherProgramIsNamed) {
  std::mutex mutex;
  std::string text;
  tests::on_thread_ranks(2, [&](Communicator& c) {
    try {
      require_agreement({{"version", "1"}, {"program", c.rank() == 1 ? "b" : "a"}}, c);
    } catch (const AgreedError& error) {
      const std::scoped_lock lock(mutex);
      text = error.what();
    }
  });
  EXPECT_NE(text.find("rank 1 differs from the others: program is b there, a on rank 0"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace assay::impl::run::start_agreement_test
