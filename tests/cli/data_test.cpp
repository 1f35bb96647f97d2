// labels: cli fault
// `assay data`, and what `assay train` says of the files of data.paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "impl/cli/verb.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/impl/data/token_formats.hpp"
#include "tests/support/scratch.hpp"

namespace assay::data_cli_test {
namespace {

namespace fs = std::filesystem;
using impl::data::TokenType;
using tests::llm_c;
using tests::megatron_idx;
using tests::npy;
using tests::Scratch;
using tests::token_bytes;

struct Result {
  int code;
  std::string out, err;
};

Result data(std::vector<std::string> words) {
  words.insert(words.begin(), "data");
  std::ostringstream out, err;
  const int code = impl::cli::run(words, {out, err});
  return {code, out.str(), err.str()};
}

void expect_refused(const Result& result, int code, const std::string& says) {
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_NE(result.err.find(says), std::string::npos) << result.err << "lacks: " << says;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(DataVerb, RefusesWhatItDoesNotDo) {
  expect_refused(data({}), 2, "does inspect, verify or convert; name one");
  expect_refused(data({"inspcet", "a"}), 2, "did you mean \"inspect\"?");
  expect_refused(data({"inspect"}), 2, "takes one or more token files");
  expect_refused(data({"inspect", "a", "--vocab", "3"}), 2, "--vocab is an option of `assay data verify`");
  expect_refused(data({"verify", "a", "--vocab", "3", "--json"}), 2,
                 "--json is an option of `assay data inspect`");
  expect_refused(data({"verify", "a"}), 2, "give --vocab N or --model M");
  expect_refused(data({"verify", "a", "--vocab", "3", "--model", "m"}), 2, "not both");
  expect_refused(data({"convert", "a"}), 2, "takes a token file and the file to make");
  expect_refused(data({"inspect", "/no/such"}), 74, "cannot be opened");
  expect_refused(data({"inspect", "a", "--dtype", "int32"}), 2, "state \"uint16\" or \"uint32\"");
}

TEST(DataVerb, InspectSaysWhatAFileHolds) {
  const Scratch scratch;
  const std::string llm = scratch.write("a.bin", llm_c({5, 300, 0}, 20240520, 1, TokenType::uint16));
  EXPECT_EQ(data({"inspect", llm}).out,
            "file       " + llm +
                "\nformat     llm.c uint16\ntokens     3\ndocuments  ends not known\n"
                "ids        0 to 300\nfirst ids  5 300 0\n");
  const std::string megatron =
      scratch.write("m.bin", token_bytes({9, 8, 7, 6, 5, 4, 3, 2, 1, 70000}, TokenType::uint32));
  scratch.write("m.idx", megatron_idx(4, 4, {4, 6}, {0, 1, 2}));
  const auto json = nlohmann::json::parse(data({"inspect", llm, megatron, "--json"}).out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0], (nlohmann::json{{"file", llm},
                                     {"format", "llm.c"},
                                     {"dtype", "uint16"},
                                     {"first_byte", 1024},
                                     {"tokens", 3},
                                     {"documents", nullptr},
                                     {"smallest_id", 0},
                                     {"largest_id", 300},
                                     {"first_ids", {5, 300, 0}}}));
  EXPECT_EQ(json[1]["format"], "Megatron");
  EXPECT_EQ(json[1]["documents"], 2);
  EXPECT_EQ(json[1]["largest_id"], 70000);
  EXPECT_EQ(json[1]["first_ids"], (std::vector<int>{9, 8, 7, 6, 5, 4, 3, 2}));
  const std::string raw = scratch.write("raw.bin", token_bytes({1, 2}, TokenType::uint16));
  expect_refused(data({"inspect", raw}), 2, "(`assay data`: --dtype)");
  EXPECT_EQ(data({"inspect", raw, "--dtype", "uint16"}).code, 0);
}

TEST(DataVerb, InspectShowsWhatItCanReadBesideWhatItCannot) {
  const Scratch scratch;
  const std::string known = scratch.write("a.bin", llm_c({5, 300, 0}, 20240520, 1, TokenType::uint16));
  const std::string unknown = scratch.write("b.bin", token_bytes({1, 2}, TokenType::uint16));
  for (const auto& files : {std::vector{known, unknown}, {unknown, known}}) {
    const Result result = data({"inspect", files[0], files[1]});
    EXPECT_EQ(result.out, data({"inspect", known}).out);
    expect_refused(result, 2, "b.bin\" has no header and does not say the type of its ids");
  }
  EXPECT_EQ(nlohmann::json::parse(data({"inspect", known, unknown, "--json"}).out).size(), 1u);
  const std::string raw = scratch.write("c.bin", token_bytes({1, 2}, TokenType::uint16));
  scratch.write("c.ends", tests::number(2, 8).substr(0, 7));
  expect_refused(data({"inspect", raw, "--dtype", "uint16"}), 65, "c.ends\" has 7 bytes");
}

TEST(DataVerb, VerifyNamesTheFirstIdOutsideTheVocabulary) {
  const Scratch scratch;
  const std::string good =
      scratch.write("good.npy", npy("<u2", "(2,)", token_bytes({1, 255}, TokenType::uint16)));
  const std::string bad =
      scratch.write("bad.npy", npy("<u2", "(3,)", token_bytes({1, 256, 300}, TokenType::uint16)));
  EXPECT_EQ(data({"verify", good, "--vocab", "256"}).out,
            good + ": 2 tokens of npy uint16, ids 1 to 255, all within the vocabulary of 256\n");
  EXPECT_EQ(data({"verify", good, bad, "--vocab", "301"}).code, 0);
  for (const char* option : {"--vocab=256", "--model=tiny-llama"})
    expect_refused(data({"verify", good, bad, option}), 65,
                   "bad.npy\" has id 256 at token 1 (byte offset 130)");
  expect_refused(data({"verify", good, "--vocab", "255"}), 65, "has id 255 at token 1");
}

/// What half a vocabulary of zeros would be trained on without a word.
TEST(DataVerb, IdsOfAnotherWidthAreAnErrorThatSaysWhich) {
  const Scratch scratch;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 500; ++i) ids.push_back(20 + (i * i + 3 * i) % 211);
  const std::string wide = scratch.write("wide.bin", token_bytes(ids, TokenType::uint32));
  const std::string narrow = scratch.write("narrow.bin", token_bytes(ids, TokenType::uint16));
  for (const auto& [file, stated, holds] :
       {std::tuple(wide, "uint16", "uint32"), {narrow, "uint32", "uint16"}}) {
    const std::string says = std::string("was stated to be ") + stated + " and holds " + holds;
    expect_refused(data({"verify", file, "--vocab", "50257", "--dtype", stated}), 65, says);
    const Result shown = data({"inspect", file, "--dtype", stated});
    expect_refused(shown, 65, says);
    EXPECT_NE(shown.out.find("raw " + std::string(stated)), std::string::npos) << shown.out;
    EXPECT_EQ(data({"verify", file, "--vocab", "50257", "--dtype", holds}).code, 0);
  }
  expect_refused(data({"convert", wide, (scratch.path() / "out.bin").string(), "--dtype", "uint16"}), 65,
                 "holds uint32");
  EXPECT_FALSE(fs::exists(scratch.path() / "out.bin"));
}

TEST(DataVerb, ConvertMakesRawIdsOfOurs) {
  const Scratch scratch;
  const std::string from = scratch.write("m.bin", token_bytes({9, 8, 7, 6, 65535}, TokenType::uint32));
  scratch.write("m.idx", megatron_idx(4, 4, {2, 3}, {0, 1, 2}));
  const std::string to = (scratch.path() / "out.bin").string();
  const Result done = data({"convert", from, to});
  EXPECT_EQ(done.out, to + ": 5 tokens of uint16 in 2 documents, from Megatron int32\n") << done.err;
  EXPECT_EQ(bytes_of(to), token_bytes({9, 8, 7, 6, 65535}, TokenType::uint16));
  EXPECT_EQ(bytes_of(scratch.path() / "out.ends"), tests::number(2, 8) + tests::number(5, 8));
  const auto facts = nlohmann::json::parse(bytes_of(scratch.path() / "out.json"));
  EXPECT_EQ(facts["dtype"], "uint16");
  EXPECT_EQ(facts["tokens"], 5);
  const auto shown = nlohmann::json::parse(data({"inspect", to, "--json"}).out);
  EXPECT_EQ(shown[0]["dtype"], "uint16") << "known without a dtype";
  EXPECT_EQ(shown[0]["documents"], 2);
  const std::string wide = scratch.write("w.npy", npy("<i8", "(1,)", tests::number(65536, 8)));
  const std::string narrow = (scratch.path() / "w.bin").string();
  EXPECT_EQ(data({"convert", wide, narrow}).out,
            narrow +
                ": 1 tokens of uint32, from npy int64, which does not say where documents end: no .ends "
                "is written\n");
  EXPECT_FALSE(fs::exists(scratch.path() / "w.ends"));
  EXPECT_EQ(bytes_of(scratch.path() / "w.bin"), token_bytes({65536}, TokenType::uint32));
}

TEST(DataVerb, ConvertOverwritesNothingAndLeavesNothing) {
  const Scratch scratch;
  const std::string from = scratch.write("a.npy", npy("<u2", "(1,)", "\x01\x01"));
  const auto to = [&](const std::string& name) { return (scratch.path() / name).string(); };
  scratch.write("taken.bin", "x"), scratch.write("b.idx", "x");
  const std::size_t before = entries_of(scratch.path());
  expect_refused(data({"convert", from, to("taken.bin")}), 2, "is there already");
  expect_refused(data({"convert", from, to("b.bin")}), 2, "b.idx\" is there already");
  expect_refused(data({"convert", from, to("c.idx")}), 2, "name the tokens, as tokens.bin");
  EXPECT_EQ(data({"convert", from, to("none/d.bin")}).code, 74);
  scratch.write("n.npy", npy("<i4", "(2,)", tests::number(1, 4) + tests::number(0xffffffff, 4)));
  expect_refused(data({"convert", to("n.npy"), to("e.bin")}), 65, "has id -1 at token 1");
  EXPECT_EQ(entries_of(scratch.path()), before + 1);
  EXPECT_EQ(bytes_of(to("taken.bin")), "x");
  scratch.write("f.bin.partial", "of a conversion that was killed");
  EXPECT_EQ(data({"convert", from, to("f.bin")}).code, 0);
  EXPECT_EQ(bytes_of(to("f.bin")), "\x01\x01");
  EXPECT_FALSE(fs::exists(to("f.bin.partial")));
}

/// A run of three steps on files of `scratch`.
struct TrainingRun {
  const Scratch& scratch;
  impl::cli::Outcome with(const std::string& name, const std::string& files,
                          const std::string& more = "") const {
    return tests::shell("cd " + scratch.path().string() + " && XDG_CACHE_HOME=" + scratch.path().string() +
                        "/cache OMP_NUM_THREADS=1 " + tests::assay_path() + " train run.directory=" + name +
                        " data.paths=" + files +
                        " train.steps=3 batch.sequences=2 batch.sequence_length=16 schedule.warmup_steps=1 "
                        "schedule.decay_steps=1 sample.sentences=0 compute.device=cpu " +
                        more);
  }
  std::vector<double> losses(const std::string& name) const {
    std::istringstream lines(bytes_of(scratch.path() / name / "run.jsonl"));
    std::vector<double> out;
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == "step") out.push_back(event["loss"]);
    }
    return out;
  }
};

std::vector<std::uint32_t> some_ids() {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 3000; ++i) ids.push_back((i * i + 7 * i) % 251);
  return ids;
}

TEST(DataOfARun, EveryFormatTrainsToTheSameLosses) {
  const Scratch scratch;
  const TrainingRun run{scratch};
  const auto ids = some_ids();
  const std::string raw = token_bytes(ids, TokenType::uint16);
  scratch.write("raw.bin", raw);
  scratch.write("llm.bin", llm_c(ids, 20240520, 1, TokenType::uint16));
  scratch.write("llama3.bin", llm_c(ids, 20240801, 7, TokenType::uint32));
  scratch.write("array.npy", npy("<u2", "(3000,)", raw));
  scratch.write("megatron.bin", raw);
  scratch.write("megatron.idx", megatron_idx(8, 2, {3000}, {0, 1}));
  const auto plain = run.with("plain", "raw.bin", "data.dtype=uint16");
  ASSERT_EQ(plain.code, 0) << plain.messages;
  const auto expected = run.losses("plain");
  ASSERT_EQ(expected.size(), 3u);
  for (const char* file : {"llm.bin", "llama3.bin", "array.npy", "megatron.bin"}) {
    const auto outcome = run.with(std::string("of-") + file, file);
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    EXPECT_EQ(run.losses(std::string("of-") + file), expected) << file;
  }
}

TEST(DataOfARun, WhatCannotBeTrainedOnIsRefusedBeforeTheFirstStep) {
  const Scratch scratch;
  const TrainingRun run{scratch};
  std::string story;
  for (int i = 0; i < 500; ++i) story += "Once upon a time there was a model.\n";
  scratch.write("story.txt", story);
  auto ids = some_ids();
  scratch.write("good.bin", token_bytes(ids, TokenType::uint16));
  ids[2995] = 256;  // in the last, unused tokens as well
  scratch.write("bad.bin", token_bytes(ids, TokenType::uint16));
  const auto refused = [&](const std::string& files, const std::string& more, int code,
                           const std::string& says) {
    const auto outcome = run.with("run", files, more);
    expect_refused({outcome.code, outcome.output, outcome.messages}, code, says);
    EXPECT_FALSE(fs::exists(scratch.path() / "run"));
  };
  refused("story.txt", "data.dtype=uint16", 65,
          "story.txt\" is text and holds no token ids; `python3 recipes/own-text/tokenise.py story.txt");
  refused("story.txt", "", 65, "is text");
  refused("good.bin", "", 2, "its beginning looks like uint16");
  refused("good.bin,bad.bin", "data.dtype=uint16", 65,
          "bad.bin\" has id 256 at token 2995 (byte offset 5990), outside the vocabulary of 256");
  refused("good.bin", "data.dtype=uint16 eval.paths=bad.bin eval.sequences=1", 65,
          "bad.bin\" has id 256 at token 2995");
  scratch.write("wide.bin", token_bytes(some_ids(), TokenType::uint32));
  refused("wide.bin", "data.dtype=uint16", 65, "was stated to be uint16 and holds uint32");
  refused("good.bin", "data.dtype=uint16 eval.paths=wide.bin", 65, "wide.bin\" was stated to be uint16");
  refused("good.bin", "data.dtype=uint32", 65, "was stated to be uint32 and holds uint16");
  scratch.write("llm.bin", llm_c(some_ids(), 20240801, 7, TokenType::uint32));
  refused("llm.bin", "data.dtype=uint16", 2, "holds uint32 by its header");
}

}  // namespace
}  // namespace assay::data_cli_test
