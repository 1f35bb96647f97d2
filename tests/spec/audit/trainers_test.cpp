// labels: unit
// What trainers do is stated once, in a row of each: rules do not ask for names.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "spec/audit/readers/read_log.hpp"
#include "spec/audit/trainer.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/simulated_run.hpp"

namespace assay::spec::audit::trainers_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

TEST(TrainersTest, EachIsOneRow) {
  std::set<std::string_view> names;
  for (const Trainer& trainer : trainers()) {
    EXPECT_TRUE(names.insert(trainer.name).second) << trainer.name;
    EXPECT_EQ(&trainer_called(trainer.name), &trainer);
  }
  EXPECT_EQ(names.count(""), 0u);
}

TEST(TrainersTest, EveryFormatThatIsReadHasARow) {
  for (std::size_t i = 0; i < tests::log_formats; ++i) {
    const auto format = static_cast<tests::LogFormat>(i);
    const tests::SimulatedRun run = tests::simulate(format, 1);
    ReadOptions options;
    options.map = tests::read_arguments(run).map;
    options.set = tests::read_arguments(run).set;
    std::istringstream in(tests::render(run));
    const std::string name = read_log(in, "drawn", options).format.name;
    EXPECT_EQ(trainer_called(name).name, name) << tests::to_string(format);
  }
}

/// A program may build a record of a trainer that nobody has heard of.
TEST(TrainersTest, OfAnUnknownOneNothingIsTaken) {
  RunRecord record;
  record.format.name = "somebody's";
  const Trainer& unknown = trainer_of(record);
  EXPECT_EQ(unknown.name, "");
  EXPECT_TRUE(unknown.splits_models);
  EXPECT_FALSE(unknown.means_known || unknown.mesh_of_all_ranks || unknown.smoothed);
}

TEST(TrainersTest, RulesHoldNoNames) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(tests::source_dir() + "/spec/audit")) {
    if (!entry.is_regular_file() || entry.path().filename() == "trainers.cpp" ||
        (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp"))
      continue;
    ++read;
    std::istringstream lines(text_of(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      const std::string code = line.substr(0, line.find("//"));
      for (const Trainer& trainer : trainers())
        EXPECT_EQ(code.find('"' + std::string(trainer.name) + '"'), std::string::npos)
            << entry.path().filename() << " asks for a trainer's name and not what it does: " << line;
    }
  }
  EXPECT_GT(read, 80);
  EXPECT_NE(text_of(tests::source_dir() + "/spec/audit/trainers.cpp").find("\"llmc\""), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::audit::trainers_test
