// labels: cli
// The README's way to train on one's own text: recipes/own-text, as people type it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/cli/golden_python.hpp"
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

  impl::cli::Outcome tokenise(const std::string& words) const {
    return tests::shell("cd " + folder.string() + " && python3 " + recipes + "tokenise.py " + words);
  }
  std::string content(const char* name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
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
  ASSERT_EQ(tokenise("latin.txt -o latin.bin").code, 0);
  std::ifstream file(folder / "latin.bin", std::ios::binary);
  std::string ids((std::istreambuf_iterator<char>(file)), {}), expected;
  for (const char byte : latin) (expected += byte) += '\0';
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(tokenise("latin.txt -o latin.txt").code, 1);
  EXPECT_EQ(fs::file_size(folder / "latin.txt"), latin.size());
  const auto missing = tokenise("latin.txt none.txt --force -o latin.bin");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.messages.find("none.txt: No such file"), std::string::npos) << missing.messages;
  EXPECT_EQ(missing.messages.find("Traceback"), std::string::npos) << missing.messages;
  EXPECT_EQ(fs::file_size(folder / "latin.bin"), expected.size());
}

TEST_F(OwnText, TokensThatAreThereAreWrittenOverWhenAskedForAlone) {
  std::ofstream(folder / "one.txt") << "one";
  std::ofstream(folder / "two.txt") << "two!";
  const char* output = "-o tokens.bin";
  ASSERT_EQ(tokenise(std::string("one.txt ") + output).code, 0);
  const auto refused = tokenise(std::string("two.txt ") + output);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.messages.find("tokens.bin is there already; give -o another file, or --force"),
            std::string::npos)
      << refused.messages;
  EXPECT_EQ(fs::file_size(folder / "tokens.bin"), 6u);
  EXPECT_FALSE(fs::exists(folder / "tokens.bin.partial"));
  EXPECT_EQ(tokenise(std::string("two.txt --force ") + output).code, 0);
  EXPECT_EQ(fs::file_size(folder / "tokens.bin"), 8u);
  // Of a text that was written in more shards, none stays among the new ones.
  ASSERT_EQ(tokenise("one.txt two.txt --shard-tokens 2 -o many.bin").code, 0);
  ASSERT_TRUE(fs::exists(folder / "many-00002.bin") && fs::exists(folder / "many-00002.ends"));
  ASSERT_EQ(tokenise("one.txt --force -o many.bin").code, 0);
  for (const char* stale : {"many-00001.bin", "many-00001.ends", "many-00002.bin", "many-00002.ends"})
    EXPECT_FALSE(fs::exists(folder / stale)) << stale;
  EXPECT_EQ(fs::file_size(folder / "many.bin"), 6u);
  // What stands beside the tokens, too, and never an input.
  std::ofstream(folder / "of-another.json") << "{}";
  EXPECT_EQ(tokenise("one.txt -o of-another.bin").code, 1);
  const auto input = tokenise("of-another.json --format jsonl --force -o of-another.bin");
  EXPECT_NE(input.messages.find("is both input and output"), std::string::npos) << input.messages;
  EXPECT_EQ(content("of-another.json"), "{}");
}

TEST_F(OwnText, TheCommandSaysHowDocumentsEnd) {
  std::ofstream(folder / "a.jsonl") << "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n";
  std::ofstream(folder / "one.txt") << "one";
  EXPECT_NE(tokenise("a.jsonl -o a.bin").output.find("data.dtype=uint16 data.document_ends=on\n"),
            std::string::npos);
  const std::string token = tokenise("a.jsonl -o b.bin --end 10").output;
  EXPECT_NE(token.find("data.end_of_document=10\n"), std::string::npos) << token;
  EXPECT_EQ(token.find("document_ends"), std::string::npos) << "one of the two is read";
  EXPECT_EQ(tokenise("one.txt -o one.bin").output.find("document_ends"), std::string::npos);
}

TEST_F(OwnText, JsonLinesAreDocumentsWhoseEndsStandBesideTheTokens) {
  std::ofstream(folder / "a.jsonl")
      << "{\"id\": 1, \"text\": \"ab\"}\n\n{\"text\": \"\"}\n{\"text\": \"\u00e9\\n\"}";
  const auto done = tokenise("a.jsonl -o a.bin --end 10");
  ASSERT_EQ(done.code, 0) << done.messages;
  EXPECT_EQ(content("a.bin"), std::string("a\0b\0\n\0\xc3\0\xa9\0\n\0\n\0", 14));
  EXPECT_EQ(content("a.ends"), std::string("\3\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 16));
  EXPECT_NE(content("a.json").find("\"documents\": 2"), std::string::npos) << content("a.json");
  EXPECT_NE(done.output.find("data.end_of_document=10"), std::string::npos) << done.output;
  EXPECT_FALSE(fs::exists(folder / "a.bin.partial"));
}

TEST_F(OwnText, BadInputIsOneLineWithItsPlace) {
  const std::pair<const char*, const char*> bad[] = {
      {"{\"text\": \"ab\"}\n\n{\"text\": \"c\n", "bad.jsonl:3: no JSON: "},
      {"{\"text\": \"ab\"}\n{\"id\": 3, \"body\": \"q\"}\n",
       "bad.jsonl:2: no field \"text\"; it has id, body: name one with --field"},
      {"{\"text\": 4}", "bad.jsonl:1: field \"text\" is int, no text"},
      {"[1]", "bad.jsonl:1: no JSON object but list"},
      {"\n{\"text\": \"\\ud800\"}", "bad.jsonl:2: half a character"},
      {"{\"text\": \"a\"}\n{\"text\": \"caf\xe9\"}", "bad.jsonl:2: byte 27 is no UTF-8"},
      {"", "hold no text"},
      {"\x1f\x8b packed", "bad.jsonl: a compressed file; unpack it first: gunzip"},
      {"PAR1 and no more", "bad.jsonl: "}};
  for (const auto& [text, named] : bad) {
    std::ofstream(folder / "bad.jsonl", std::ios::binary) << text;
    const auto refused = tokenise("bad.jsonl -o bad.bin");
    EXPECT_EQ(refused.code, 1) << text;
    EXPECT_EQ(refused.messages.rfind("tokenise.py: ", 0), 0u) << refused.messages;
    EXPECT_EQ(refused.messages.find('\n'), refused.messages.size() - 1) << refused.messages;
    EXPECT_NE(refused.messages.find(named), std::string::npos) << refused.messages;
    EXPECT_FALSE(fs::exists(folder / "bad.bin"));
    EXPECT_FALSE(fs::exists(folder / "bad.bin.partial"));
  }
  std::ofstream(folder / "bad.jsonl") << "{\"text\": 4}\n[1]\n{\"text\": \"fine\"}\n";
  const auto rest = tokenise("bad.jsonl -o bad.bin --skip-bad");
  EXPECT_EQ(rest.code, 0) << rest.messages;
  EXPECT_NE(rest.output.find("2 lines or rows were left out"), std::string::npos) << rest.output;
  EXPECT_NE(rest.messages.find("left out: bad.jsonl:2: "), std::string::npos) << rest.messages;
  EXPECT_EQ(fs::file_size(folder / "bad.bin"), 8u);
}

TEST_F(OwnText, AKilledRunGoesOnWhereItWas) {
  std::ofstream text(folder / "long.txt", std::ios::binary);
  std::string expected;
  for (int line = 0; line < 3'000'000; ++line) expected += std::to_string(line * 7919LL % 1'000'003) + '\n';
  text << expected;
  text.close();
  int starts = 1;
  for (double seconds = 0.2; starts < 60; ++starts, seconds *= 1.2) {
    const auto ended =
        tests::shell("cd " + folder.string() + " && timeout -s KILL " + std::to_string(seconds) +
                     " python3 " + recipes + "tokenise.py long.txt -o long.bin --processes 1");
    if (ended.code == 0) break;
    // One that was killed behind its last act left nothing to go on with.
    if (ended.messages.find("is there already") != std::string::npos) break;
    // One that is killed behind its last act has written all.
    if (fs::exists(folder / "long.bin")) {
      ASSERT_EQ(fs::file_size(folder / "long.bin"), 2 * expected.size());
    }
  }
  EXPECT_GT(starts, 1);
  const std::string ids = content("long.bin");
  ASSERT_EQ(ids.size(), 2 * expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_TRUE(ids[2 * i] == expected[i] && ids[2 * i + 1] == 0) << i;
  // What is left of another command is not gone on with in silence.
  fs::create_directory(folder / "long.bin.partial");
  std::ofstream(folder / "long.bin.partial" / "note.json")
      << R"({"command": "other", "pieces": 1, "shards": [[1, 0]], "skipped": []})";
  const auto refused = tokenise("long.txt -o long.bin");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.messages.find("give --restart to begin anew"), std::string::npos) << refused.messages;
  EXPECT_EQ(tokenise("long.txt -o long.bin --restart").code, 1) << "the tokens are there";
  EXPECT_EQ(tokenise("long.txt -o long.bin --restart --force").code, 0);
}

TEST_F(OwnText, ATokenizersIdsAreThoseOfWholeDocuments) {
  if (const std::string reason = tests::lacks_package("tokenizers"); !reason.empty()) GTEST_SKIP() << reason;
  const auto checked =
      tests::run_golden_python("own_text_check.py " + recipes + "tokenise.py " + folder.string(), 300);
  EXPECT_EQ(checked.code, 0) << checked.messages;
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
