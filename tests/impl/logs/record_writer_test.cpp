// labels: unit fault
#include "impl/logs/record_writer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::logs::record_writer_test {
namespace {

namespace fs = std::filesystem;

class RecordWriterImpl : public testing::Test {
 protected:
  tests::Scratch scratch;
  const fs::path folder = scratch.path();
};

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_F(RecordWriterImpl, WritesWhatTheReaderReadsAndCreatesFolders) {
  const fs::path file = folder / "a" / "b" / "run.jsonl";
  RecordWriter writer(file);
  writer.write(tests::example_start());
  writer.write(tests::example_step(1));
  writer.sync();
  const auto events = spec::record::read_events((folder / "a" / "b").string());  // while the writer is open
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0], spec::record::Event(tests::example_start()));
  EXPECT_EQ(events[1], spec::record::Event(tests::example_step(1)));
}

TEST_F(RecordWriterImpl, ASecondWriterIsRefusedUntilTheFirstEnds) {
  const fs::path file = folder / "run.jsonl";
  {
    RecordWriter first(file);
    first.write(tests::example_start());
    try {
      RecordWriter second(file);
      FAIL() << "two runs write one record";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("another run"), std::string::npos) << error.what();
    }
    first.write(tests::example_step(1));
  }
  RecordWriter(file).write(tests::example_step(2));
  EXPECT_EQ(spec::record::read_events(folder.string()).size(), 3u);
}

TEST_F(RecordWriterImpl, AppendingRemovesALineThatWasCutOff) {
  const fs::path file = folder / "run.jsonl";
  RecordWriter(file).write(tests::example_start());
  const std::string whole = content(file);
  for (const std::string& rest : {std::string("{\"event\":\"st"), std::string(10'000, 'x'), std::string()}) {
    std::ofstream(file, std::ios::app) << rest;
    RecordWriter writer(file);
    EXPECT_EQ(content(file), whole);
  }
  std::ofstream(file) << "{\"event\"";  // nothing but half a line
  RecordWriter(file).write(tests::example_start());
  EXPECT_EQ(content(file), whole);
}

/// However often the writer is ended in the middle of a line: read_events refuses a broken chain.
TEST_F(RecordWriterImpl, EveryStartGoesOnWithTheChain) {
  const fs::path file = folder / "run.jsonl";
  std::string place;
  for (std::int64_t start = 0; start < 4; ++start) {
    RecordWriter writer(file);
    writer.write(tests::example_start());
    if (start != 2) writer.write(tests::example_step(start));
    place = writer.place();
    std::ofstream(file, std::ios::app) << (start % 2 ? "{\"event\":\"step\",\"st" : "");
  }
  const auto events = spec::record::read_events(file.string());
  EXPECT_EQ(events.size(), 7u);
  const std::string text = content(file), whole = text.substr(0, text.rfind('\n'));
  EXPECT_TRUE(whole.ends_with("\"chain\":\"" + place + "\"}")) << whole;
}

/// Long lines are read from their end: a start on many ranks is longer than any block.
TEST_F(RecordWriterImpl, TheLastLineMayBeLong) {
  const fs::path file = folder / "run.jsonl";
  auto start = tests::example_start();
  start.cpu = std::string(1'000'000, 'c');
  RecordWriter(file).write(start);
  RecordWriter(file).write(tests::example_step(1));
  EXPECT_EQ(spec::record::read_events(file.string()).size(), 2u);
}

TEST_F(RecordWriterImpl, AppendingStartsARecordThatIsNotThere) {
  RecordWriter(folder / "run.jsonl").write(tests::example_start());
  EXPECT_EQ(spec::record::read_events(folder.string()).size(), 1u);
}

/// While it lives, no file of this process may be longer: writes beyond that fail as on a full disk.
class NoFileLongerThan {
 public:
  explicit NoFileLongerThan(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~NoFileLongerThan() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(RecordWriterImpl, WhatTheDiskDoesNotTakeWaitsAndIsNamedAtTheEnd) {
  RecordWriter writer(folder / "run.jsonl");
  const NoFileLongerThan full(100);
  writer.write(tests::example_start());
  const std::size_t first = writer.waiting();
  EXPECT_GT(first, 0u);
  writer.write(tests::example_step(1));
  EXPECT_GT(writer.waiting(), first);
  try {
    writer.sync();
    FAIL() << "not all is on the disk";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("run.jsonl: cannot write"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("File too large"), std::string::npos);
  }
}

TEST_F(RecordWriterImpl, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder / "file") << "not a folder";
  try {
    RecordWriter writer(folder / "file" / "run.jsonl");
    FAIL() << "opened";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
  }
}

}  // namespace
}  // namespace assay::impl::logs::record_writer_test
