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
#include "tests/support/simulated/run.hpp"

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
    EXPECT_EQ(trainer.constant_peak > 0, !trainer.constant_peak_in_words.empty()) << trainer.name;
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

/// The trainer that a line of code asks for by name; empty where there is none. A reader says the name of its
/// own format, a document's that of the trainer it claims, and a program may be called like one.
std::string_view asked_for(const std::string& line) {
  const std::string code = line.substr(0, line.find("//"));
  for (const char* const own : {"format.name = \"", ".convention = \"", "claim(\"", "beside_this_program(\""})
    if (code.find(own) != std::string::npos) return {};
  for (const Trainer& trainer : trainers())
    if (code.find('"' + std::string(trainer.name) + '"') != std::string::npos) return trainer.name;
  return {};
}

/// Sources that may ask: the table of all trainers, and the reader of documents, where it recognises them.
bool may_ask(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "trainers.cpp" || name == "json_document.cpp" || name == "json_llmq.cpp";
}

TEST(TrainersTest, RulesHoldNoNames) {
  int read = 0;
  for (const char* const folder : {"/spec/audit", "/impl/cli"})
    for (const auto& entry : fs::recursive_directory_iterator(tests::source_dir() + folder)) {
      const fs::path& path = entry.path();
      if ((path.extension() != ".cpp" && path.extension() != ".hpp") || may_ask(path)) continue;
      ++read;
      std::istringstream lines(text_of(path));
      for (std::string line; std::getline(lines, line);)
        EXPECT_EQ(asked_for(line), "") << path << " asks for a trainer's name and not what it does: " << line;
    }
  EXPECT_GT(read, 250);
}

TEST(TrainersTest, ANameThatIsAskedForIsFound) {
  EXPECT_EQ(asked_for("if (run.format.name != \"hugging_face\") return;"), "hugging_face");
  EXPECT_EQ(asked_for("  const bool own = name == \"assay\" || \"llmc\" == name;"), "assay");
  EXPECT_EQ(asked_for("constexpr std::string_view tables = \"mapped\";"), "mapped");
  EXPECT_EQ(asked_for("  format.name = \"megatron\";"), "");
  EXPECT_EQ(asked_for("  std::string name;  ///< \"assay\", \"llm_tii\""), "");
}

}  // namespace
}  // namespace assay::spec::audit::trainers_test
