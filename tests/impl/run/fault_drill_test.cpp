// labels: unit fault
#include "impl/run/start/fault_drill.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"

namespace assay::impl::run::fault_drill_test {
namespace {

TEST(FaultDrillImpl, IsReadAsItIsWritten) {
  EXPECT_FALSE(read_drill(nullptr));
  EXPECT_FALSE(read_drill(""));
  const auto drill = read_drill("kind=stop rank=3 step=17 phase=update stall=6");
  ASSERT_TRUE(drill);
  EXPECT_EQ(drill->kind, DrillKind::stop);
  EXPECT_EQ(drill->rank, 3);
  EXPECT_EQ(drill->step, 17);
  EXPECT_EQ(drill->doing, Doing::update);
  EXPECT_EQ(drill->stall_seconds, 6);
}

TEST(FaultDrillImpl, EveryKindHasItsWord) {
  const std::pair<const char*, DrillKind> kinds[] = {{"kill", DrillKind::kill},   {"stop", DrillKind::stop},
                                                     {"error", DrillKind::error}, {"exit", DrillKind::exit},
                                                     {"spin", DrillKind::spin},   {"hang", DrillKind::hang},
                                                     {"wait", DrillKind::wait}};
  for (const auto& [word, kind] : kinds)
    EXPECT_EQ(read_drill((std::string("kind=") + word + " rank=0 step=1").c_str())->kind, kind) << word;
}

TEST(FaultDrillImpl, AnythingElseIsRefusedByName) {
  for (const char* text : {"kind=burn", "rank=-1", "step=two", "phase=lunch", "stop", "mode=stop"}) {
    try {
      read_drill(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

TEST(FaultDrillImpl, StrikesInItsPhaseOfItsStepAlone) {
  Row row;
  row.on_enter(planted(FaultDrill{.kind = DrillKind::error, .rank = 0, .step = 2, .doing = Doing::reduce}));
  const auto step = [&](std::int64_t number) {
    row.begin_step(number);
    for (const Doing doing : {Doing::data_wait, Doing::reduce, Doing::forward, Doing::backward})
      row.enter(doing);
  };
  step(1);
  row.enter(Doing::reduce);
  step(2);
  EXPECT_EQ(row.view().step, 2);
  EXPECT_EQ(row.view().doing, Doing::backward);
  EXPECT_THROW(row.enter(Doing::reduce), std::runtime_error) << "the reduction of gradients";
  Row healthy;
  healthy.begin_step(2);
  healthy.enter(Doing::reduce);
}

}  // namespace
}  // namespace assay::impl::run::fault_drill_test
