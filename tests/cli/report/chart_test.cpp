// labels: unit property cli
#include "impl/report/chart.hpp"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "impl/report/axis.hpp"

namespace assay::impl::report::chart_test {
namespace {

TEST(AxisReport, TicksAreRoundAndLabelsShareTheirDigits) {
  const Axis axis = make_axis(0, 5.57, 5, true);
  EXPECT_EQ(axis.labels, (std::vector<std::string>{"0", "2", "4", "6"}));
  EXPECT_EQ(axis.high, 6);
  EXPECT_EQ(make_axis(0, 0.003, 5, true).labels, (std::vector<std::string>{"0", "0.001", "0.002", "0.003"}));
  EXPECT_EQ(make_axis(0, 20'500, 5, true).labels,
            (std::vector<std::string>{"0", "5k", "10k", "15k", "20k", "25k"}));
  EXPECT_EQ(make_axis(1, 250, 6, false).labels, (std::vector<std::string>{"50", "100", "150", "200", "250"}));
  EXPECT_EQ(make_axis(0, 3e-5, 3, true).labels, (std::vector<std::string>{"0", "1e-05", "2e-05", "3e-05"}));
}

RC_GTEST_PROP(AxisReport, CoversItsRangeWithFewRoundTicks, ()) {
  const double low = *rc::gen::inRange(-1000000, 1000000) * std::pow(10.0, *rc::gen::inRange(-9, 9));
  const double span = *rc::gen::inRange(0, 1000000) * std::pow(10.0, *rc::gen::inRange(-3, 6));
  const Axis axis = make_axis(low, low + span, 5, true);
  const double invisible = 2e-9 * (axis.high - axis.low);
  RC_ASSERT(axis.low <= low + invisible && axis.high >= low + span - invisible);
  RC_ASSERT(axis.low < axis.high);
  RC_ASSERT(axis.ticks.size() == axis.labels.size());
  RC_ASSERT(axis.ticks.size() >= 2u && axis.ticks.size() <= 12u);
}

TEST(AxisReport, ARangeOfRoundingErrorsIsNone) {
  const Axis axis = make_axis(4.6, std::nextafter(4.6, 5), 5, true);
  EXPECT_LT(axis.ticks.size(), 12u);
  EXPECT_LT(axis.low, 4.5);
  EXPECT_GT(axis.high, 4.7);
}

TEST(AxisReport, ALogarithmicAxisHasRoundTicksAndHalvesAreAsLongAsDoubles) {
  const Axis axis = make_log_axis(0.7, 5.5);
  EXPECT_EQ(axis.low, 0.5);
  EXPECT_EQ(axis.high, 10);
  EXPECT_EQ(axis.labels, (std::vector<std::string>{"0.5", "1", "2", "5", "10"}));
  EXPECT_NEAR(axis.position(2) - axis.position(1), axis.position(4) - axis.position(2), 1e-12);
  EXPECT_EQ(axis.position(0.5), 0);
  EXPECT_EQ(axis.position(10), 1);
  for (const double low : {1e-9, 0.3, 1.0, 7e5})
    for (const double factor : {1.0, 1.5, 100.0, 1e12}) {
      const Axis each = make_log_axis(low, low * factor);
      EXPECT_LE(each.low, low * (1 + 1e-9));
      EXPECT_GE(each.high, low * factor * (1 - 1e-9));
      EXPECT_LT(each.low, each.high);
      EXPECT_LE(each.ticks.size(), 12u);
    }
}

TEST(ChartReport, UnderThePointerAreTheValuesOfEachSeriesAtThatStep) {
  const std::string svg = line_chart({"Loss",
                                      "nats",
                                      {{"a", {1, 2, 3}, {4, NAN, 2}, 0}, {"b", {1, 2, 3}, {1e-9, 5, 7e8}, 1}},
                                      {},
                                      true,
                                      false});
  EXPECT_NE(svg.find("<title>step 1\na: 4.0000\nb: 1.000e-09</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("\nb: 5.0000</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>step 3\na: 2.0000\nb: 7.000e+08</title>"), std::string::npos);
}

TEST(ChartReport, WhatIsNotAboveZeroIsNotOnALogarithmicAxis) {
  Chart chart{"Loss", "nats", {{"loss", {1, 2, 3, 4}, {1, 0, -2, 2}, 0}}, {{-1, "floor"}}, true, false};
  chart.log_y = true;
  const std::string svg = line_chart(chart);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("floor"), std::string::npos);
}

TEST(SeriesReport, ThinningKeepsSpikesAndEnds) {
  Series series{"s", {}, {}, 0};
  for (int i = 0; i < 100'000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 777 ? 1e6 : i == 55'555 ? -1e6 : std::sin(i * 0.001));
  }
  const Series thin = thinned(series, 600);
  EXPECT_LE(thin.x.size(), 600u);
  EXPECT_EQ(*std::max_element(thin.y.begin(), thin.y.end()), 1e6);
  EXPECT_EQ(*std::min_element(thin.y.begin(), thin.y.end()), -1e6);
  EXPECT_TRUE(std::is_sorted(thin.x.begin(), thin.x.end()));
  EXPECT_EQ(thinned(series, 200'000).x.size(), series.x.size());
}

TEST(SeriesReport, TheRunningMeanKeepsTheEndsAndAStraightLine) {
  Series series{"s", {}, {}, 0};
  for (int i = 0; i < 50; ++i) {
    series.x.push_back(i);
    series.y.push_back(2.0 * i);
  }
  const Series mean = running_mean(series, 9);
  for (int i = 0; i < 50; ++i) EXPECT_DOUBLE_EQ(mean.y[i], 2.0 * i);
  series.y[10] = NAN;
  EXPECT_TRUE(std::isfinite(running_mean(series, 9).y[10]));
}

TEST(ChartReport, ValuesThatAreNotFiniteLeaveAGapAndNoNanInTheDrawing) {
  const Series series{"loss", {1, 2, 3, 4}, {1, NAN, HUGE_VAL, 2}, 0};
  const std::string svg = line_chart({"Loss", "nats", {series}, {{NAN, "floor"}}, true, false});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  const std::size_t path = svg.find(" d=\"");
  const std::string d = svg.substr(path, svg.find("\"/>", path) - path);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'M'), 2);  // two pieces
}

TEST(ChartReport, EmptyAndConstantSeriesStillGiveAFigure) {
  EXPECT_NE(line_chart({"Loss", "", {}, {}, true, false}).find("no finite values"), std::string::npos);
  EXPECT_NE(line_chart({"Loss", "", {{"a", {1}, {0}, 0}}, {}, true, false}).find("<circle"),
            std::string::npos);
  EXPECT_NE(line_chart({"Loss", "", {{"a", {1, 2}, {5, 5}, 0}}, {}, false, false}).find("<path"),
            std::string::npos);
}

TEST(ChartReport, BarsLeaveOutEmptyPartsAndAddUpToTheirShare) {
  const std::string html = bar_chart("Phases", {{"a", 0}, {"b", 1}, {"c", 2}}, {{"run", {1, 0, 3}, "4 ms"}});
  EXPECT_NE(html.find("width:25.00%"), std::string::npos);
  EXPECT_NE(html.find("width:75.00%"), std::string::npos);
  EXPECT_EQ(html.find("</span>b</li>"), std::string::npos);
  EXPECT_EQ(bar_chart("Phases", {{"a", 0}}, {{"run", {0}, ""}}), "");
}

TEST(ChartReport, ABarOfOtherPartsIsRefused) {
  for (const std::vector<double>& parts : {std::vector<double>{1, 2, 3}, std::vector<double>{1}})
    EXPECT_THROW(bar_chart("Phases", {{"a", 0}, {"b", 1}}, {{"run", parts, ""}}), std::invalid_argument);
}

}  // namespace
}  // namespace assay::impl::report::chart_test
