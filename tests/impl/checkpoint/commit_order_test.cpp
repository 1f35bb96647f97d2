// labels: unit fault
// The order in which a save reaches the disk. A killed process loses nothing that it wrote, a machine without
// power does: only flushes in the right order keep the last committed checkpoint, and a kill cannot show
// them.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/machine/disk_call.hpp"
#include "impl/run/saving.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "tests/impl/support/on_flush.hpp"
#include "tests/support/scratch.hpp"

using assay::tests::on_flush;

std::function<bool(const std::filesystem::path&)>& assay::tests::on_flush() {
  static std::function<bool(const std::filesystem::path&)> observer;
  return observer;
}

// A program's own fsync comes before the C library's, for the libraries that it uses as well.
extern "C" int fsync(int descriptor) {
  if (on_flush() &&
      !on_flush()(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor)))) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace assay::impl::checkpoint::commit_order_test {
namespace {

namespace fs = std::filesystem;

/// A flush, and what stood in the folder of checkpoints at that moment.
struct Flush {
  fs::path path;
  bool published;  ///< the checkpoint has its final name
  bool marked;     ///< the flushed folder holds a commit marker
  bool manifest;   ///< and a manifest
  bool as_disk;    ///< those that watch this rank know that a disk has it
};

class CommitOrderImpl : public testing::Test {
 protected:
  void SetUp() override {
    model_.name = "tiny", model_.vocab = 11, model_.width = 8, model_.layers = 1, model_.heads = 2;
    model_.kv_heads = 1, model_.head_dim = 4, model_.ffn = 12, model_.context = 8;
  }
  void TearDown() override { on_flush() = nullptr; }

  Saved save_step(std::int64_t step) {
    return save(parent_.parent_path().string(), allocate(model_, Dtype::f32, at::kCPU),
                {.step = step, .tokens = 0, .config = {}}, 1);
  }

  /// Saves step `step`, keeping one checkpoint, and gives its flushes in order.
  std::vector<Flush> flushes_of_save(std::int64_t step) {
    std::vector<Flush> flushes;
    const fs::path final_path = parent_ / folder_name(step);
    on_flush() = [&](const fs::path& path) {
      flushes.push_back({path, fs::exists(final_path), fs::exists(path / marker_name),
                         fs::exists(path / manifest_name), DiskCall::under_way()});
      return true;
    };
    save_step(step);
    on_flush() = nullptr;
    return flushes;
  }

  spec::ModelSpec model_;
  tests::Scratch scratch_;
  fs::path root_ = fs::canonical(scratch_.path()), parent_ = root_ / "runs" / "a" / "checkpoints";
};

TEST_F(CommitOrderImpl, EveryFileThenItsFolderThenTheName) {
  const std::vector<Flush> flushes = flushes_of_save(1);
  const auto flush_of = [&](const fs::path& path) {
    return std::find_if(flushes.begin(), flushes.end(), [&](const Flush& f) { return f.path == path; });
  };
  const fs::path partial = parent_ / ("." + folder_name(1) + ".partial");
  const auto folder = flush_of(partial), marker = flush_of(partial / marker_name);
  ASSERT_NE(folder, flushes.end()) << "the folder's entries were not flushed before it got its name";
  ASSERT_NE(marker, flushes.end());
  EXPECT_FALSE(folder->published);
  EXPECT_TRUE(folder->marked);
  EXPECT_LT(marker, folder);
  for (const auto& entry : fs::directory_iterator(parent_ / folder_name(1))) {
    const auto file = flush_of(partial / entry.path().filename());
    ASSERT_NE(file, flushes.end()) << entry.path() << " was not flushed";
    EXPECT_LE(file, marker) << entry.path() << " was flushed after the marker that vouches for it";
  }
  ASSERT_EQ(flushes.back().path, parent_) << "the final name was not flushed";
  EXPECT_TRUE(flushes.back().published);
}

TEST_F(CommitOrderImpl, NewFoldersAreEntriesOfTheirParentsBeforeAnythingIsInThem) {
  const std::vector<Flush> flushes = flushes_of_save(1);
  for (const fs::path& holder : {root_, root_ / "runs", root_ / "runs" / "a"}) {
    const auto flush =
        std::find_if(flushes.begin(), flushes.end(), [&](const Flush& f) { return f.path == holder; });
    ASSERT_NE(flush, flushes.end()) << "what was created in " << holder << " was not flushed";
    EXPECT_FALSE(flush->published);
  }
  for (const Flush& flush : flushes_of_save(2))
    EXPECT_NE(flush.path, root_) << "nothing new was created there";
}

/// A disk that takes minutes for a flush is no rank that hangs.
TEST_F(CommitOrderImpl, EveryFlushIsKnownAsACallToADisk) {
  const std::vector<Flush> flushes = flushes_of_save(1);
  ASSERT_FALSE(flushes.empty());
  for (const Flush& flush : flushes) EXPECT_TRUE(flush.as_disk) << flush.path;
  EXPECT_FALSE(DiskCall::under_way());
}

TEST_F(CommitOrderImpl, AnOldCheckpointLosesItsMarkerBeforeItsFiles) {
  flushes_of_save(1);
  const std::vector<Flush> flushes = flushes_of_save(2);
  const Flush& last = flushes.back();
  EXPECT_EQ(last.path, parent_ / folder_name(1)) << "half a checkpoint could come back with its marker";
  EXPECT_TRUE(last.published) << "the old one was given up before the new one was committed";
  EXPECT_FALSE(last.marked);
  EXPECT_TRUE(last.manifest);
  EXPECT_FALSE(fs::exists(parent_ / folder_name(1)));
}

// Every flush of a save in turn: it throws, and the same save tried again flushes what it left unflushed.
TEST_F(CommitOrderImpl, AFlushThatFailsIsMadeUpForByTheNextTry) {
  for (std::size_t failing = 0;; ++failing) {
    fs::remove_all(root_ / "runs");
    std::size_t count = 0;
    fs::path failed;
    std::vector<fs::path> flushed;
    on_flush() = [&](const fs::path& path) {
      if (count++ == failing) failed = path;
      if (count - 1 != failing && !failed.empty()) flushed.push_back(path);
      return count - 1 != failing;
    };
    try {
      save_step(1);
      EXPECT_TRUE(failed.empty()) << failed << " was not flushed, and nobody heard of it";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::io);
    }
    if (failed.empty()) break;
    EXPECT_NO_THROW(save_step(1)) << failing;
    EXPECT_NE(std::find(flushed.begin(), flushed.end(), failed), flushed.end())
        << "the save went through without the flush of " << failed;
    ASSERT_LT(failing, 20u);
  }
}

TEST_F(CommitOrderImpl, ACheckpointThatIsThereHasItsSize) {
  const Saved first = save_step(1), again = save_step(1);
  EXPECT_GT(first.bytes, size_on_disk(spec::inventory(model_), Dtype::f32));
  EXPECT_EQ(again.bytes, first.bytes);
}

TEST_F(CommitOrderImpl, AnOldOneThatCannotBeRemovedDoesNotUndoTheSave) {
  flushes_of_save(1);
  on_flush() = [&](const fs::path& path) { return path != parent_ / folder_name(1); };
  spec::RunConfig config;
  config.directory = parent_.parent_path().string(), config.checkpoint_keep = 1;
  std::vector<spec::record::Event> said;
  const auto alone = make_self_communicator();
  run::Saving(config, *alone, [&](const spec::record::Event& event) {
    said.push_back(event);
  }).on_the_way(allocate(model_, Dtype::f32, at::kCPU), {.step = 2, .tokens = 0, .config = {}});
  on_flush() = nullptr;
  EXPECT_TRUE(committed(parent_ / folder_name(2)));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<spec::record::Checkpoint>(said[0]));
  const auto& warning = std::get<spec::record::Warning>(said[1]);
  EXPECT_EQ(warning.code, "not_removed");
  EXPECT_NE(warning.text.find(folder_name(1)), std::string::npos) << warning.text;
  EXPECT_FALSE(save_step(3).not_removed.has_value());
  EXPECT_EQ(std::distance(fs::directory_iterator(parent_), {}), 1)
      << "what was left behind goes with the next";
}

}  // namespace
}  // namespace assay::impl::checkpoint::commit_order_test
