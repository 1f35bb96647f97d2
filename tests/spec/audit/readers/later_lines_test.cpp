// labels: unit
// What holds for the first lines of a log holds for those far down, which are read because they are like
// them, and for parts that are quoted again.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "spec/audit/invariants.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::later_lines_test {
namespace {

std::string written(const char* format, auto... numbers) {
  char text[400];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

/// An empty cell between tabs is a cell.
TEST(LaterLinesSpec, TabsThatFollowEachOtherAreColumns) {
  std::string tabs = "step\tloss\tval_loss\tseconds\n", semicolons = "step;loss;val_loss;seconds\n";
  for (int i = 1; i <= 60; ++i) {
    const std::string number = std::to_string(i), seconds = written("%.4f", 1 + 0.001 * i);
    const bool validation = i % 10 == 0;
    const std::string loss = validation ? "" : written("%.3f", 4 - 0.01 * i), other = validation ? "9.5" : "";
    tabs += number + "\t" + loss + "\t" + other + "\t" + seconds + "\n";
    semicolons += number + ";" + loss + ";" + other + ";" + seconds + "\n";
  }
  const char* const map = "step=step,loss=loss,seconds=seconds";
  const RunRecord by_tabs = tests::read_mapped(tabs, map),
                  by_semicolons = tests::read_mapped(semicolons, map);
  ASSERT_EQ(by_tabs.steps.size(), by_semicolons.steps.size());
  for (std::size_t i = 0; i < by_tabs.steps.size(); ++i)
    for (const Field field : {Field::step, Field::loss, Field::seconds}) {
      const auto &a = by_tabs.steps[i][field], &b = by_semicolons.steps[i][field];
      ASSERT_EQ(a.has_value(), b.has_value()) << i;
      EXPECT_EQ(a ? a->value : 0, b ? b->value : 0) << i;
    }
}

std::string megatron_step(int i, const char* batch) {
  return written(
      " [2025-11-15 00:%02d:%02d] iteration %8d/  100000 | consumed samples: %12d | elapsed time per "
      "iteration (ms): "
      "%.1f | learning rate: 1.000000E-04 | global batch size:%s| lm loss: 4.720000E+00 | number of skipped "
      "iterations:   0 | number of nan iterations:   0 |\n",
      i / 60, i % 60, i, 256 * i, 1000.0 + i % 7, batch);
}

/// A step of which only the end is left was there: the gap is its own, however far down.
TEST(LaterLinesSpec, TheTornEndOfAStepFarDownCountsAsUnread) {
  for (const int torn : {3, 31}) {
    std::string log;
    for (int i = 1; i <= 40; ++i)
      log += i == torn ? "   0 | number of nan iterations:   0 |\n" : megatron_step(i, "   256 ");
    const RunRecord run = tests::read_text(log);
    EXPECT_EQ(run.unread_lines, 1) << torn;
    EXPECT_EQ(judge("steps", run).verdict, Verdict::holds) << torn;
  }
}

/// "global batch size: 32|" is no beginning of "global batch size: 320|".
TEST(LaterLinesSpec, ABatchOfOneDigitMoreIsAnotherBatch) {
  std::string log;
  for (int i = 1; i <= 40; ++i) log += megatron_step(i, i <= 30 ? " 256" : " 2560");
  const RunRecord run = tests::read_text(log);
  ASSERT_EQ(run.steps.size(), 40u);
  EXPECT_EQ(run.steps[35][Field::step_sequences]->value, 2560);
}

/// A run that is quoted twice, the second time with lines left out.
TEST(LaterLinesSpec, WhatASecondQuotationLeavesOutIsNotMissing) {
  const auto step = [](int i) {
    return written("iter %d: loss %.4f, time %.2fms, mfu 30.00%%\n", i, 10 - 0.05 * i, 240.0 + i % 7);
  };
  const auto log = [&](const std::string& between) {
    std::string out;
    for (int i = 1; i <= 8; ++i) out += step(i);
    out += "Later in the same run:\n";
    for (int i = 1; i <= 3; ++i) out += step(i);
    out += between;
    for (int i = 20; i <= 25; ++i) out += step(i);
    return tests::read_text(out);
  };
  EXPECT_EQ(log("...\n").steps.size(), 14u);
  EXPECT_EQ(judge("steps", log("...\n")).verdict, Verdict::holds);
  EXPECT_EQ(judge("steps", log("")).verdict, Verdict::contradicts);
}

/// Evaluations that a second quotation shows are evaluations of the run.
TEST(LaterLinesSpec, WhereASecondQuotationPausesTheRunDoes) {
  std::string log;
  for (int i = 1; i <= 8; ++i) log += megatron_step(i, "   256 ");
  log += "Later in the same run:\n";
  for (int i = 1; i <= 7; ++i) log += megatron_step(i, "   256 ");
  log += "saving checkpoint at iteration       8 to /checkpoints in torch format\n";
  for (int i = 9; i <= 12; ++i) log += megatron_step(i, "   256 ");
  const RunRecord run = tests::read_text(log);
  ASSERT_EQ(run.steps.size(), 12u);
  EXPECT_EQ(run.pauses, std::vector<std::int64_t>({17}));
}

/// Two lines of one loss and rate are two steps where their epochs differ.
TEST(LaterLinesSpec, LinesOfTwoEpochsAreTwoSteps) {
  const auto log = [](bool twice) {
    std::string out;
    for (int i = 0; i < 6; ++i) {
      const int pair = i / 2;
      out += written("{'loss': %.1f, 'learning_rate': 1e-05, 'epoch': %.1f}\n", 2.5 - 0.1 * pair,
                     0.1 * (twice ? pair + 1 : i + 1));
    }
    return tests::read_text(out).steps.size();
  };
  EXPECT_EQ(log(false), 6u);
  EXPECT_EQ(log(true), 3u);
}

}  // namespace
}  // namespace assay::spec::audit::later_lines_test
