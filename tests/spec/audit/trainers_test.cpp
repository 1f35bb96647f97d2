// labels: unit
// What trainers do is stated once, in a row of each: rules do not ask for names.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "spec/audit/readers/read_log.hpp"
#include "spec/audit/trainer.hpp"
#include "tests/support/simulated_run.hpp"

namespace assay::spec::audit::trainers_test {
namespace {

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

}  // namespace
}  // namespace assay::spec::audit::trainers_test
