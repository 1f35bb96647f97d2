// labels: unit
// Columns of shares in tables whose units nobody states.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/option_words.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::table_units_test {
namespace {

using tests::read_mapped;

/// Two steps, their MFU as it is written.
std::string csv(const std::string& first, const std::string& second) {
  return "step,loss,mfu\n1,3.25," + first + "\n2,3.20," + second + "\n";
}
std::string json_lines(const std::string& first, const std::string& second) {
  const auto row = [](const char* step, const std::string& mfu) {
    return std::string(R"({"step": )") + step + R"(, "loss": 3.25, "mfu": )" + mfu + "}\n";
  };
  return row("1", first) + row("2", second);
}

double mfu(const RunRecord& run, std::size_t step) { return run.steps.at(step)[Field::mfu].value().value; }

TEST(TableUnitsSpec, TheFirstNumberTellsPercentFromSharesWhereNobodySaysTheUnit) {
  for (const auto& log : {csv, json_lines}) {
    const RunRecord percent = read_mapped(log("46.65", "0.98")), share = read_mapped(log("0.4665", "1.2"));
    EXPECT_DOUBLE_EQ(mfu(percent, 0), 0.4665);
    EXPECT_DOUBLE_EQ(mfu(percent, 1), 0.0098);
    EXPECT_EQ(judge("mfu_possible", percent).verdict, Verdict::holds);
    EXPECT_DOUBLE_EQ(mfu(share, 0), 0.4665);
    EXPECT_DOUBLE_EQ(mfu(share, 1), 1.2);
    EXPECT_EQ(judge("mfu_possible", share).verdict, Verdict::contradicts);
  }
}

TEST(TableUnitsSpec, AStatedUnitIsTaken) {
  const std::string map = "step=step,loss=loss,mfu=mfu";
  EXPECT_DOUBLE_EQ(mfu(read_mapped(csv("46.65", "47"), map + ":%"), 0), 0.4665);
  EXPECT_DOUBLE_EQ(mfu(read_mapped(csv("0.98", "0.97"), map + ":%"), 0), 0.0098);
}

TEST(TableUnitsSpec, AMappedColumnWithoutAUnitIsReadAsOneOfThatName) {
  for (const auto& log : {csv, json_lines}) {
    const auto mapped = [&](const char* first, const char* second) {
      return read_mapped(log(first, second), "step=step,loss=loss,mfu=mfu");
    };
    const RunRecord percent = mapped("46.65", "0.98"), share = mapped("0.4665", "1.2");
    EXPECT_DOUBLE_EQ(mfu(percent, 0), 0.4665);
    EXPECT_DOUBLE_EQ(mfu(percent, 1), 0.0098);
    EXPECT_DOUBLE_EQ(mfu(share, 0), 0.4665);
    EXPECT_DOUBLE_EQ(mfu(share, 1), 1.2);
  }
  // A column that is several fields: of shares alone, and settled once.
  const RunRecord both = read_mapped("step,x\n1,46.65\n2,1.5\n", "step=step,loss=x,mfu=x,hfu=x");
  EXPECT_DOUBLE_EQ(mfu(both, 1), 0.015);
  EXPECT_DOUBLE_EQ(both.steps.at(1)[Field::hfu].value().value, 0.015);
  EXPECT_DOUBLE_EQ(both.steps.at(1)[Field::loss].value().value, 1.5);
}

TEST(TableUnitsSpec, CellsMayEndInPercent) {
  for (const char* map : {"", "step=step,loss=loss,mfu=mfu", "step=step,loss=loss,mfu=mfu:%"}) {
    const RunRecord run = read_mapped(csv("0.92%", "46.9 %"), map);
    EXPECT_DOUBLE_EQ(mfu(run, 0), 0.0092) << map;
    EXPECT_DOUBLE_EQ(mfu(run, 1), 0.469) << map;
    EXPECT_EQ(run.unread_lines, 0) << map;
  }
  // No other number does.
  EXPECT_EQ(read_mapped("step,loss,mfu\n1,3.25%,0.4\n2,3.2,0.4\n").unread_lines, 1);
}

TEST(TableUnitsSpec, ThePageNamesEveryFieldAndSettingThatTheOptionsTake) {
  std::ifstream file(tests::source_dir() + "/spec/audit/readers/tables.md");
  std::stringstream page;
  page << file.rdbuf();
  const auto named = [&](std::string_view name) {
    return page.str().find("`" + std::string(name) + "`") != std::string::npos;
  };
  for (std::size_t i = 0; i < field_count; ++i)
    EXPECT_TRUE(named(to_string(static_cast<Field>(i)))) << to_string(static_cast<Field>(i));
  for (std::size_t i = 0; i < setting_count; ++i)
    EXPECT_TRUE(named(to_string(static_cast<Setting>(i)))) << to_string(static_cast<Setting>(i));
  for (const Measures each :
       {Measures::time, Measures::share, Measures::factor, Measures::bytes, Measures::flops})
    for (const std::string& unit : unit_names({each})) EXPECT_TRUE(named(unit)) << unit;
}

}  // namespace
}  // namespace assay::spec::audit::table_units_test
