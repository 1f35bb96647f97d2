// labels: unit fault
// A run writes where its settings say, and nowhere else.
#include "impl/machine/output_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::output_folder_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The message of the error; empty where none is thrown.
template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    return error.what();
  }
  return "";
}

/// A run's folder behind a link, as on many clusters, and one outside of it that must stay as it is.
struct OutputFolderImpl : testing::Test {
  const tests::Scratch scratch;
  const fs::path run = scratch.path() / "scratch/run", outside = scratch.path() / "outside";
  void SetUp() override {
    fs::create_directories(scratch.path() / "mnt/run");
    fs::create_symlink("mnt", scratch.path() / "scratch");
    fs::create_directory(outside);
    std::ofstream(outside / "file") << "theirs";
  }
  void TearDown() override {
    EXPECT_EQ(text_of(outside / "file"), "theirs");
    EXPECT_EQ(std::distance(fs::directory_iterator(outside), fs::directory_iterator()), 1);
  }
  /// A link of the run's to the outside.
  void plant(const char* name, const fs::path& to) const { fs::create_symlink(to, run / name); }
};

TEST_F(OutputFolderImpl, TheUsersFolderMayLieBehindLinks) {
  const OutputFolder folder(run);
  folder.made("checkpoints").made("step");
  const auto descriptor = folder.within("checkpoints").create("file");
  ASSERT_TRUE(descriptor);
  EXPECT_EQ(write_all(*descriptor, "ours"), 0);
  close(*descriptor);
  EXPECT_EQ(text_of(scratch.path() / "mnt/run/checkpoints/file"), "ours");
  EXPECT_EQ(OutputFolder::own(run / "checkpoints").path(), run / "checkpoints");
}

TEST_F(OutputFolderImpl, NoLinkWithinIsWrittenThrough) {
  plant("linked", outside), plant("file", outside / "file"), plant("none", outside / "none");
  const OutputFolder folder(run);
  const auto expect_refused = [&](const auto& work) {
    const std::string text = refusal(work);
    EXPECT_NE(text.find("it is a link"), std::string::npos) << text;
    EXPECT_NE(text.find(run.string()), std::string::npos) << text;
  };
  expect_refused([&] { folder.within("linked"); });
  expect_refused([&] { folder.made("linked"); });
  expect_refused([&] { OutputFolder::own(run / "linked"); });
  for (const char* name : {"file", "none"}) {
    expect_refused([&] { folder.open_file(name, O_WRONLY | O_CREAT | O_APPEND); });
    EXPECT_FALSE(folder.create(name)) << "it is there: a link";
    EXPECT_EQ(folder.look(name), Entry::link);
  }
  replace_file(folder, "file", "ours");
  EXPECT_EQ(folder.look("file"), Entry::file) << "the link made room";
  EXPECT_EQ(text_of(run / "file"), "ours");
}

TEST_F(OutputFolderImpl, NothingIsRemovedThroughALink) {
  const OutputFolder folder(run);
  const OutputFolder inner = folder.made("inner");
  fs::create_symlink(outside, run / "inner/linked");
  fs::create_symlink(outside / "file", run / "inner/file");
  std::ofstream(run / "inner/own") << "ours";
  plant("outer", outside);
  folder.remove("outer");
  folder.remove("inner");
  folder.remove("none");
  EXPECT_TRUE(fs::is_empty(run));
}

TEST_F(OutputFolderImpl, ANameIsNoWayOut) {
  const OutputFolder folder(run);
  for (const std::string name : {"..", ".", "", "../outside/file", "/etc/passwd", "a/b"}) {
    EXPECT_NE(refusal([&] { folder.remove(name); }), "") << name;
    EXPECT_NE(refusal([&] { folder.create(name); }), "") << name;
    EXPECT_NE(refusal([&] { replace_file(folder, name, "x"); }), "") << name;
    EXPECT_NE(refusal([&] { folder.within(name); }), "") << name;
  }
}

TEST_F(OutputFolderImpl, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo((run / "fifo").c_str(), 0600), 0);
  fs::create_directory(run / "folder");
  const OutputFolder folder(run);
  const auto work = std::async(std::launch::async, [&] {
    EXPECT_NE(refusal([&] { folder.open_file("fifo", O_WRONLY | O_APPEND); }), "");
    EXPECT_NE(refusal([&] { folder.open_file("fifo", O_RDWR | O_CREAT | O_APPEND); }).find("is a pipe"),
              std::string::npos);
    EXPECT_NE(refusal([&] { folder.open_file("folder", O_RDWR | O_CREAT); }), "");
    EXPECT_NE(refusal([&] { write_output(run / "fifo", "x"); }), "") << "nobody reads";
    EXPECT_NE(refusal([&] { write_output(run / "folder", "x"); }), "");
    EXPECT_NE(refusal([&] { write_output("/dev/full", "x"); }), "");
    EXPECT_EQ(refusal([&] { write_output("/dev/null", "x"); }), "");
  });
  ASSERT_EQ(work.wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST_F(OutputFolderImpl, AnOutputIsReplacedWholeOrLeft) {
  const OutputFolder folder(run);
  replace_file(folder, "report.html", "first");
  std::ifstream reader(run / "report.html");  // has the old one open
  replace_file(folder, "report.html", "second");
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(reader), {}}), "first");
  EXPECT_EQ(text_of(run / "report.html"), "second");
  // A file that a user names may be a link: what it leads to is replaced.
  fs::create_symlink("report.html", run / "latest.html");
  write_output(run / "latest.html", "third");
  EXPECT_TRUE(fs::is_symlink(run / "latest.html"));
  EXPECT_EQ(text_of(run / "report.html"), "third");
  fs::create_directory(run / "busy");
  EXPECT_NE(refusal([&] { replace_file(folder, "busy", "x"); }), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(run), fs::directory_iterator()), 3)
      << "nothing partial is left";
}

TEST_F(OutputFolderImpl, TheUmaskDecidesWhoMayRead) {
  const OutputFolder folder(run);
  const mode_t before = umask(027);
  replace_file(folder, "file", "x");
  folder.made("folder");
  close(folder.open_file("opened", O_WRONLY | O_CREAT));
  umask(before);
  const auto mode = [&](const char* name) { return static_cast<int>(fs::status(run / name).permissions()); };
  EXPECT_EQ(mode("file"), 0640);
  EXPECT_EQ(mode("opened"), 0640);
  EXPECT_EQ(mode("folder"), 0750);
}

/// Who may read a report, its owner has decided.
TEST_F(OutputFolderImpl, AReplacedFileKeepsItsPermissions) {
  const OutputFolder folder(run);
  const mode_t before = umask(022);
  for (const auto& [name, mode] : {std::pair("narrow", 0600), std::pair("wide", 0666)}) {
    replace_file(folder, name, "first");
    fs::permissions(run / name, static_cast<fs::perms>(mode));
    replace_file(folder, name, "second");
    write_output(run / name, "third");
    EXPECT_EQ(text_of(run / name), "third");
    EXPECT_EQ(static_cast<int>(fs::status(run / name).permissions()), mode) << name;
  }
  umask(before);
}

/// As `3>> log` in a shell; others write to the same file before and behind.
TEST_F(OutputFolderImpl, AFileThatADescriptorNamesIsWrittenBehindWhatStandsThere) {
  for (const int flags : {O_APPEND, O_TRUNC}) {
    const int descriptor = open((run / "log").c_str(), O_WRONLY | O_CREAT | flags, 0600);
    ASSERT_GE(descriptor, 0);
    const std::string number = std::to_string(descriptor);
    fs::create_symlink("/dev/fd/" + number, run / "linked");
    EXPECT_EQ(write_all(descriptor, "before "), 0);
    EXPECT_EQ(refusal([&] { write_output("/dev/fd/" + number, "a "); }), "");
    EXPECT_EQ(refusal([&] { write_output("/proc/self/fd/" + number, "b "); }), "");
    EXPECT_EQ(refusal([&] { write_output(run / "linked", "c "); }), "");
    EXPECT_EQ(write_all(descriptor, "after"), 0);
    close(descriptor);
    EXPECT_EQ(text_of(run / "log"), "before a b c after");
    fs::remove(run / "linked"), fs::remove(run / "log");
  }
}

TEST_F(OutputFolderImpl, OthersCodeReachesTheSameFolder) {
  const OutputFolder folder(run);
  std::ofstream(folder.path_for_others("trace.json")) << "trace";
  EXPECT_EQ(text_of(run / "trace.json"), "trace");
}

}  // namespace
}  // namespace assay::impl::output_folder_test
