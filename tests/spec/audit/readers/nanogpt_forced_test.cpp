// labels: unit
// nanoGPT's lines on what a checkpoint of GPT-2 forces.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/read_text.hpp"

namespace assay::spec::audit::nanogpt_forced_test {
namespace {

/// train.py with init_from = gpt2-medium, `before` its own lines.
RunRecord forced(const std::string& before) {
  return tests::read_text(before +
                          "tokens per iteration will be: 32,768\n"
                          "Initializing from OpenAI GPT-2 weights: gpt2-medium\n"
                          "loading weights from pretrained gpt: gpt2-medium\n"
                          "forcing vocab_size=50257, block_size=1024, bias=True\n"
                          "number of parameters: 353.77M\n"
                          "iter 0: loss 3.6274, time 60438.51ms, mfu -100.00%\n"
                          "iter 1: loss 3.8274, time 28651.44ms, mfu -100.00%\n");
}

TEST(NanogptForcedSpec, SizesOfTheCheckpointAreSettings) {
  const RunRecord run = forced("");
  ASSERT_TRUE(run[Setting::vocab] && run[Setting::sequence_length]);
  EXPECT_EQ(run[Setting::vocab]->value, 50257);
  EXPECT_EQ(run[Setting::sequence_length]->value, 1024);
  EXPECT_EQ(run[Setting::sequence_length]->line, 4);
}

TEST(NanogptForcedSpec, PassesMayBeShorterAndTheVocabularyIsTheCheckpoints) {
  const RunRecord run =
      forced("Overriding: block_size = 256\nfound vocab_size = 65 (inside data/shakespeare_char/meta.pkl)\n");
  EXPECT_EQ(run[Setting::sequence_length].value().value, 256);
  EXPECT_EQ(run[Setting::vocab].value().value, 50257);
}

}  // namespace
}  // namespace assay::spec::audit::nanogpt_forced_test
