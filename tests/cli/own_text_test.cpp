// labels: cli
// The README's way to train on one's own text: recipes/own-text, as people type it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::own_text_test {
namespace {

namespace fs = std::filesystem;

class OwnText : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(tests::binary_dir() + "/bin/assay-train"))
      GTEST_SKIP() << "this build has no assay-train (it needs libtorch)";
    std::ofstream text(folder / "my text.txt");
    for (int line = 0; line < 200; ++line) text << "line " << line << " of a text of one's own\n";
  }

  tests::Scratch scratch;
  const fs::path folder = scratch.path();
  const std::string recipes = tests::source_dir() + "/recipes/own-text/";
};

TEST_F(OwnText, IsTokenisedAndTrainedOnAsTheReadmeSays) {
  const auto tokenised = tests::shell("cd " + folder.string() + " && python3 " + recipes +
                                      "tokenise.py 'my text.txt' -o tokens.bin");
  ASSERT_EQ(tokenised.code, 0) << tokenised.messages;
  EXPECT_EQ(fs::file_size(folder / "tokens.bin"), 2 * fs::file_size(folder / "my text.txt"));
  EXPECT_NE(tokenised.output.find("assay train data.paths=tokens.bin data.dtype=uint16"), std::string::npos)
      << tokenised.output;
  const auto trained =
      tests::shell("cd " + folder.string() + " && " + tests::assay_path() + " train " + recipes +
                       "bytes.toml train.steps=2 batch.sequences=4 compute.threads=1 "
                       "compute.device=cpu",
                   120);
  ASSERT_EQ(trained.code, 0) << trained.messages;
  const auto run = spec::record::assemble(spec::record::read_events((folder / "runs" / "own-text").string()));
  EXPECT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.start.data.source, "files");
}

TEST_F(OwnText, BytesAreKeptAsTheyAreAndNoFileIsLost) {
  const std::string latin = "caf\xe9\r\nx";
  std::ofstream(folder / "latin.txt", std::ios::binary) << latin;
  const auto tokenise = [&](const std::string& words) {
    return tests::shell("cd " + folder.string() + " && python3 " + recipes + "tokenise.py " + words);
  };
  ASSERT_EQ(tokenise("latin.txt -o latin.bin").code, 0);
  std::ifstream file(folder / "latin.bin", std::ios::binary);
  std::string ids((std::istreambuf_iterator<char>(file)), {}), expected;
  for (const char byte : latin) (expected += byte) += '\0';
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(tokenise("latin.txt -o latin.txt").code, 1);
  EXPECT_EQ(fs::file_size(folder / "latin.txt"), latin.size());
  const auto missing = tokenise("latin.txt none.txt -o latin.bin");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.messages.find("none.txt: No such file"), std::string::npos) << missing.messages;
  EXPECT_EQ(missing.messages.find("Traceback"), std::string::npos) << missing.messages;
  EXPECT_EQ(fs::file_size(folder / "latin.bin"), expected.size());
}

TEST_F(OwnText, PathsMayHoldSpacesAndCommas) {
  fs::create_directory(folder / "a b");
  std::ofstream(folder / "a b" / "one, two.bin") << std::string(4096, '\0');
  const auto trained = tests::shell(
      "cd '" + (folder / "a b").string() + "' && " + tests::assay_path() +
          " train 'data.paths=[\"../a b/one, two.bin\"]' data.dtype=uint16 train.steps=1 batch.sequences=2 "
          "compute.threads=1 compute.device=cpu 'run.directory=my run/x' && " +
          tests::assay_path() + " report 'my run/x'",
      120);
  EXPECT_EQ(trained.code, 0) << trained.messages;
  EXPECT_TRUE(fs::exists(folder / "a b" / "my run" / "x" / "report.html"));
}

}  // namespace
}  // namespace assay::own_text_test
