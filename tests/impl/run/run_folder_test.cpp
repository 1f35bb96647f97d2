// labels: unit fault
// Where a run writes and what it continues: no run may write over another one, or save where it is lost.
#include "impl/run/start/run_folder.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::run_folder_test {
namespace {

namespace fs = std::filesystem;

class RunFolderImpl : public testing::Test {
 protected:
  std::string folder(const std::string& name) const { return (scratch_.path() / name).string(); }

  /// Path of a checkpoint of step `step` in the run folder `name`.
  std::string saved(const std::string& name, std::int64_t step) const {
    spec::ModelSpec model;
    model.name = "tiny", model.vocab = 11, model.width = 8, model.layers = 1, model.heads = 2;
    model.kv_heads = 1, model.head_dim = 4, model.ffn = 12, model.context = 8;
    return checkpoint::save(folder(name), allocate(model, Dtype::f32, at::kCPU),
                            {.step = step, .tokens = 0, .config = {}}, 10)
        .path;
  }

  spec::RunConfig resuming(const std::string& path, const std::string& directory) const {
    spec::RunConfig config;
    config.resume = spec::Resume::path, config.resume_path = path, config.directory = directory;
    return config;
  }

  tests::Scratch scratch_;
};

TEST_F(RunFolderImpl, ResumesTheNamedCheckpointOrTheNewestOfTheNamedRun) {
  const std::string first = saved("a", 1), second = saved("a", 2);
  EXPECT_EQ(resume_path(resuming(second, folder("a"))), second);
  EXPECT_EQ(resume_path(resuming(folder("a"), folder("a"))), second);
  EXPECT_EQ(resume_path(resuming(first, folder("b"))), first);
  EXPECT_THROW(resume_path(resuming(folder("nothing"), folder("b"))), UserError);
}

TEST_F(RunFolderImpl, GoingBackBehindALaterCheckpointOfTheSameFolderIsRefused) {
  const std::string first = saved("a", 1), second = saved("a", 2), other = saved("b", 2);
  for (const std::string& from : {first, other}) {
    try {
      resume_path(resuming(from, folder("a")));
      FAIL() << "what it saves would be lost";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(second), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("run.directory"), std::string::npos) << error.what();
    }
  }
}

TEST_F(RunFolderImpl, TheWayOutThatADamagedCheckpointNamesIsOne) {
  const std::string first = saved("a", 1), second = saved("a", 2);
  fs::resize_file(second + "/COMMITTED", 5);
  spec::RunConfig config = resuming("", folder("a"));
  config.resume = spec::Resume::automatic;
  try {
    checkpoint::read_state(resume_path(config));
    FAIL() << "damage is to be refused by name";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("move " + second + " away"), std::string::npos) << text;
    EXPECT_NE(text.find("checkpoint.resume=auto"), std::string::npos) << text;
  }
  fs::rename(second, folder("aside"));
  EXPECT_EQ(checkpoint::read_state(resume_path(config)).step, 1);
}

TEST_F(RunFolderImpl, ACheckpointWithFormerNamesOfSettingsGoesOn) {
  const checkpoint::State then{.step = 1,
                               .tokens = 0,
                               .config =
                                   "[parallel]\ndata = \"shard\"\ngather = \"multiprocessors\"\n"
                                   "scatter = \"multiprocessors\"\n"};
  spec::RunConfig config;
  config.data_parallel = spec::DataParallel::shard;
  EXPECT_FALSE(refuse_other_settings(config, then, "step-1"));
}

TEST_F(RunFolderImpl, TheWayToGoOnNamesTheFolderOrThatNothingIsSaved) {
  fs::create_directories(folder("empty"));
  EXPECT_NE(way_to_go_on(folder("empty")).find("run the same command anew"), std::string::npos);
  EXPECT_EQ(way_to_go_on(folder("empty")).find("resume=auto"), std::string::npos);
  saved("a", 1);
  const std::string settings = "run.directory=" + folder("a") + " checkpoint.resume=auto";
  EXPECT_NE(way_to_go_on(folder("a")).find(settings), std::string::npos) << way_to_go_on(folder("a"));
  EXPECT_NE(way_to_go_on(folder("on-another-host")).find("checkpoint.resume=auto"), std::string::npos);
}

TEST_F(RunFolderImpl, RunsThatStartAtOnceGetAFolderEach) {
  spec::RunConfig config;
  config.directory = folder("new/run");
  std::vector<std::string> chosen(16);
  {
    std::barrier start(16);
    std::vector<std::jthread> runs;
    for (std::string& mine : chosen)
      runs.emplace_back([&] {
        const auto alone = make_self_communicator();
        start.arrive_and_wait();
        mine = run_directory(config, *alone);
      });
  }
  EXPECT_EQ(std::set<std::string>(chosen.begin(), chosen.end()).size(), chosen.size());
  for (const std::string& mine : chosen) EXPECT_TRUE(fs::exists(mine + "/run.jsonl")) << mine;
}

TEST_F(RunFolderImpl, AnEmptyFolderIsTakenAndARunContinuesInItsOwn) {
  const auto alone = make_self_communicator();
  spec::RunConfig config;
  config.directory = folder("run");
  fs::create_directory(config.directory);
  EXPECT_EQ(run_directory(config, *alone), folder("run"));
  EXPECT_EQ(run_directory(config, *alone), folder("run-2"));
  config.resume = spec::Resume::automatic;
  EXPECT_EQ(run_directory(config, *alone), folder("run"));
}

}  // namespace
}  // namespace assay::impl::run::run_folder_test
