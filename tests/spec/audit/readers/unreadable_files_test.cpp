// labels: unit
// Files that are named wrongly (usage, 2), and those that are there and cannot be read (65): one rule for
// all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <streambuf>

#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::unreadable_files_test {
namespace {

struct Refused {
  ExitCode code = ExitCode::done;
  std::string text;
};

template <class Read>
Refused refusal(const Read& read) {
  try {
    read();
  } catch (const UserError& error) {
    return {error.code(), error.what()};
  }
  return {};
}
Refused refused(const std::filesystem::path& path) {
  return refusal([&] { read_logs(path.string()); });
}

class UnreadableFilesSpec : public testing::Test {
 protected:
  UnreadableFilesSpec() : folder_(std::filesystem::path(testing::TempDir()) / "assay_unreadable") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~UnreadableFilesSpec() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_;
};

TEST_F(UnreadableFilesSpec, WhatIsNotThereIsAnErrorOfUsage) {
  std::ofstream(folder_ / "file") << "text";
  for (const char* name : {"none", "none/none", "file/none", ""})
    EXPECT_EQ(refused(folder_ / name).code, ExitCode::usage) << name << refused(folder_ / name).text;
  EXPECT_NE(refused(folder_).text.find("is a folder without a run.jsonl"), std::string::npos);
}

TEST_F(UnreadableFilesSpec, WhatIsThereAndCannotBeReadIsBadData) {
  std::filesystem::create_symlink("circle", folder_ / "circle");
  EXPECT_EQ(refused(folder_ / "circle").code, ExitCode::bad_data);
  EXPECT_NE(refused(folder_ / "circle").text.find("where its links lead"), std::string::npos)
      << refused(folder_ / "circle").text;
  std::filesystem::create_directory(folder_ / "run.jsonl");
  EXPECT_EQ(refused(folder_).code, ExitCode::bad_data);
  std::filesystem::remove(folder_ / "run.jsonl");
  std::filesystem::create_symlink("run.jsonl", folder_ / "run.jsonl");
  EXPECT_EQ(refused(folder_).code, ExitCode::bad_data);
}

/// A source that fails, as a disk does.
struct Failing : std::streambuf {
  int_type underflow() override { throw 1; }
};

TEST_F(UnreadableFilesSpec, AStreamThatFailsIsBadDataAndOneThatWasReadUsage) {
  Failing failing;
  std::istream broken(&failing);
  EXPECT_EQ(refusal([&] { read_logs(broken, "log"); }).code, ExitCode::bad_data);
  std::istringstream once(render(tests::simulate(tests::LogFormat::torchtitan, 7)));
  EXPECT_EQ(refusal([&] { read_logs(once, "standard input"); }).code, ExitCode::done);
  const Refused again = refusal([&] { read_logs(once, "standard input"); });
  EXPECT_EQ(again.code, ExitCode::usage);
  EXPECT_EQ(again.text, "standard input: was read to its end before; give each log once");
}

}  // namespace
}  // namespace assay::spec::audit::unreadable_files_test
