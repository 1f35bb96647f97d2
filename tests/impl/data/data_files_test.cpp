// labels: unit property fault
#include "impl/data/data_files.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::data::data_files_test {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

class DataFiles : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (scratch.path() / name).string(); }
  void touch(const std::string& name) const {
    fs::create_directories((scratch.path() / name).parent_path());
    std::ofstream(at(name)) << "x";
  }
  Paths named(const Paths& paths) const {
    spec::RunConfig config;
    config.data_paths = paths;
    name_data_files(config);
    return config.data_paths;
  }
  std::string refusal(const Paths& paths) const {
    try {
      named(paths);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  }
  tests::Scratch scratch;
};

TEST_F(DataFiles, AFolderIsItsTokenFilesInTheOrderOfTheirNames) {
  for (const char* name : {"shards/b.bin", "shards/a.bin", "shards/A.npy", "shards/a.json", "shards/a.idx",
                           "shards/a.ends", "shards/tokenizer.json", "shards/README", "shards/deeper/c.bin"})
    touch(name);
  EXPECT_EQ(named({at("shards")}), (Paths{at("shards/A.npy"), at("shards/a.bin"), at("shards/b.bin")}));
  EXPECT_EQ(named({at("shards/")}), (Paths{at("shards/A.npy"), at("shards/a.bin"), at("shards/b.bin")}));
  EXPECT_EQ(named({at("shards/deeper"), at("shards/b.bin")}),
            (Paths{at("shards/deeper/c.bin"), at("shards/b.bin")}));
}

TEST_F(DataFiles, APatternIsWhatItMatchesButForWhatStandsBesideTokens) {
  for (const char* name :
       {"t-2.bin", "t-10.bin", "t-1.bin", "t-1.json", "t-1.ends", "t-1.idx", "u.tokens", "t-x/q.bin"})
    touch(name);
  EXPECT_EQ(named({at("t-*")}), (Paths{at("t-1.bin"), at("t-10.bin"), at("t-2.bin"), at("t-x/q.bin")}));
  EXPECT_EQ(named({at("t-?.bin")}), (Paths{at("t-1.bin"), at("t-2.bin")}));
  EXPECT_EQ(named({at("t-[2-9].bin"), at("*.tokens")}), (Paths{at("t-2.bin"), at("u.tokens")}));
  EXPECT_EQ(named({at("*/q.bin")}), (Paths{at("t-x/q.bin")}));
}

TEST_F(DataFiles, APathThatIsThereIsTakenAsItStands) {
  touch("odd[1]*.bin");
  touch("odd1.bin");
  EXPECT_EQ(named({at("odd[1]*.bin")}), (Paths{at("odd[1]*.bin")}));
  EXPECT_EQ(named({at("missing.bin")}), (Paths{at("missing.bin")}));  // who opens it says so
}

TEST_F(DataFiles, WhereNothingIsFoundWhatWasLookedForIsNamed) {
  fs::create_directories(at("empty"));
  touch("only/readme.txt");
  EXPECT_EQ(refusal({at("empty")})
                .find("data.paths: \"" + at("empty") +
                      "\" is a folder without a file that ends in "
                      ".bin or .npy"),
            0u)
      << refusal({at("empty")});
  EXPECT_NE(refusal({at("only")}).find("without a file"), std::string::npos);
  EXPECT_EQ(refusal({at("*.bin")}).find("data.paths: \"" + at("*.bin") + "\" matches no token file"), 0u);
  spec::RunConfig config;
  config.data_paths = {"a.bin"}, config.eval_paths = {at("none*")};
  EXPECT_THROW(name_data_files(config), UserError);
}

TEST_F(DataFiles, SourcesGrowWithTheirEntries) {
  for (const char* name : {"web/1.bin", "web/2.bin", "web/3.bin", "code.bin"}) touch(name);
  spec::RunConfig config = spec::load_text("[[data.sources]]\nname = 'web'\npath = ['" + at("web") +
                                               "']\nweight = 1\n[[data.sources]]\nname = 'code'\npath = ['" +
                                               at("code.bin") + "', '" + at("web/?.bin") + "']\nweight = 1\n",
                                           "r", {"eval.paths=" + at("web/*")});
  name_data_files(config);
  EXPECT_EQ(config.data_paths, (Paths{at("web/1.bin"), at("web/2.bin"), at("web/3.bin"), at("code.bin"),
                                      at("web/1.bin"), at("web/2.bin"), at("web/3.bin")}));
  EXPECT_EQ(config.mixture[0].files, 3);
  EXPECT_EQ(config.mixture[1].files, 4);
  EXPECT_EQ(config.eval_paths, (Paths{at("web/1.bin"), at("web/2.bin"), at("web/3.bin")}));
  name_data_files(config);  // of files it changes nothing
  EXPECT_EQ(config.mixture[1].files, 4);
}

/// Names of any letters: the folder holds them in order, and each names itself.
RC_GTEST_FIXTURE_PROP(DataFiles, AnyNamesAreFoundAndSorted, ()) {
  const std::string folder = at("drawn");
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::set<std::string> names;
  for (int i = *rc::gen::inRange(1, 8); i > 0; --i) {
    const auto stem = *rc::gen::nonEmpty(
        rc::gen::container<std::string>(rc::gen::elementOf(std::string("aZ09 -_.*?[]{}~$'\"\\\xc3\xa9"))));
    names.insert(folder + "/" + stem + ".bin");
  }
  for (const std::string& name : names) std::ofstream(name) << "x";
  const Paths sorted(names.begin(), names.end());
  RC_ASSERT(named({folder}) == sorted);
  RC_ASSERT(named(sorted) == sorted);
}

}  // namespace
}  // namespace assay::impl::data::data_files_test
