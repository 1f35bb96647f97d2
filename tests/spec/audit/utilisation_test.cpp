// labels: unit property
// HFU beside MFU: what documents skip is no contradiction, what nothing can skip is.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/flops/executed.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"

namespace assay::spec::audit::utilisation_test {
namespace {

constexpr double mfu = 0.4;
constexpr std::int64_t one_document = -1, newline = 10;

/// The record of one step of tiny-llama whose HFU is `hfu`. `end_of_document`: nothing when the record does
/// not say.
RunRecord record_of(double hfu, std::optional<std::int64_t> end_of_document, bool document_ends = false) {
  record::RunStart start = tests::example_start();
  start.flops_per_token = exact_flops(find_model("tiny-llama"), 128).per_token().to_int64();
  if (end_of_document) start.settings.emplace_back("data.end_of_document", *end_of_document);
  if (document_ends) start.settings.emplace_back("data.document_ends", std::string("on"));
  record::Step step = tests::example_step(1);
  step.mfu = mfu, step.hfu = hfu;
  std::istringstream in(record::to_json(start) + "\n" + record::to_json(step) + "\n");
  return read_log(in, "run.jsonl");
}

/// executed / exact of one sequence of tiny-llama with these documents.
double executed_share(const std::vector<std::int64_t>& documents, AttentionKernel::Kind kind) {
  const ModelSpec model = find_model("tiny-llama");
  std::int64_t tokens = 0;
  for (const std::int64_t length : documents) tokens += length;
  return executed_flops(model, documents, {kind, 12, 16}).executed().to_double() /
         exact_flops(model, tokens).per_sequence().to_double();
}

TEST(UtilisationSpec, HfuBelowMfuContradictsWhereASequenceIsOneDocument) {
  EXPECT_EQ(judge("hfu", record_of(0.4, one_document)).verdict, Verdict::holds);
  const Result below = judge("hfu", record_of(0.39, one_document));
  EXPECT_EQ(below.verdict, Verdict::contradicts);
  ASSERT_EQ(below.causes.size(), 1u);
  EXPECT_EQ(below.causes[0].id, "hfu_below_mfu");
  EXPECT_EQ(judge("hfu", record_of(0.39, one_document, /*document_ends=*/true)).verdict, Verdict::holds);
}

TEST(UtilisationSpec, HfuBelowMfuIsWhatDocumentsSkip) {
  // 128 tokens in four documents of 32: the fused kernel runs a quarter of the pairs, and the scores again.
  const double share = executed_share({32, 32, 32, 32}, AttentionKernel::Kind::fused);
  ASSERT_LT(share, 1);
  const Result told = judge("hfu", record_of(mfu * share, newline));
  EXPECT_EQ(told.verdict, Verdict::holds) << told.note;
  EXPECT_NE(told.note.find("below MFU on 1 of 1 lines, at the lowest "), std::string::npos) << told.note;
  EXPECT_NE(told.note.find("ends of documents"), std::string::npos) << told.note;
  EXPECT_EQ(told.note.find("does not say"), std::string::npos) << told.note;
  const Result untold = judge("hfu", record_of(mfu * share, std::nullopt));
  EXPECT_EQ(untold.verdict, Verdict::holds);
  EXPECT_NE(untold.note.find("the log does not say whether it stops there"), std::string::npos);
}

TEST(UtilisationSpec, NothingIsBelowDocumentsOfOneToken) {
  // By hand, spec/metrics/metrics.md: (6 P + 12 L H hd) / (6 P + 6 L H hd (T + 1)), tiny-llama at T = 128.
  const double least = (6 * 819'200.0 + 12 * 4 * 128) / (6 * 819'200.0 + 6 * 4 * 128 * 129);
  EXPECT_EQ(judge("hfu", record_of(mfu * least * 1.0001, newline)).verdict, Verdict::holds);
  const Result below = judge("hfu", record_of(mfu * least * 0.9999, newline));
  EXPECT_EQ(below.verdict, Verdict::contradicts);
  EXPECT_NEAR(below.recomputed.low, mfu * least, 1e-6);
  EXPECT_EQ(judge("hfu", record_of(mfu * least * 0.9999, std::nullopt)).verdict, Verdict::contradicts);
  // No kernel comes below it: the scores that backward computes again are on top.
  EXPECT_GT(executed_share(std::vector<std::int64_t>(128, 1), AttentionKernel::Kind::fused), least);
}

RC_GTEST_PROP(UtilisationSpecProperty, WhatRanIsNeverAContradiction, ()) {
  std::vector<std::int64_t> documents;
  for (std::int64_t left = 128; left > 0; left -= documents.back())
    documents.push_back(*rc::gen::inRange<std::int64_t>(1, left + 1));
  const auto kind = *rc::gen::element(AttentionKernel::Kind::fused, AttentionKernel::Kind::square,
                                      AttentionKernel::Kind::tiles);
  const double hfu = mfu * executed_share(documents, kind);
  RC_ASSERT(judge("hfu", record_of(hfu, newline)).verdict == Verdict::holds);
  RC_ASSERT(judge("hfu", record_of(hfu, std::nullopt)).verdict == Verdict::holds);
}

TEST(UtilisationSpec, WithoutAModelNothingIsSaidOfTheFloor) {
  RunRecord record;
  record.steps.emplace_back();
  record.steps[0][Field::mfu] = exactly(0.4);
  record.steps[0][Field::hfu] = exactly(0.1);
  EXPECT_EQ(judge("hfu", record).verdict, Verdict::holds);
  EXPECT_NE(judge("hfu", record).note.find("the log does not say"), std::string::npos);
  record[Setting::end_of_document] = exactly(-1);
  EXPECT_EQ(judge("hfu", record).verdict, Verdict::contradicts);
}

TEST(UtilisationSpec, RatesThatNoMfuIsMadeOfAreTold) {
  const auto run = [](double executed) {
    RunRecord r;
    Step step;
    step.line = 1;
    step[Field::step] = exactly(1, 1);
    step[Field::flops_rate] = exactly(300e12, 1);
    step[Field::hardware_flops_rate] = exactly(executed, 1);
    r.steps.push_back(step);
    r.steps_seen = 1;
    return r;
  };
  const Result held = judge("hfu", run(400e12)), below = judge("hfu", run(200e12));
  EXPECT_EQ(held.verdict, Verdict::holds);
  EXPECT_TRUE(held.unprinted);
  EXPECT_EQ(held.recomputed.low, 1);
  EXPECT_EQ(held.note, "400.0 TFLOP/s executed, 300.0 TFLOP/s of the model");
  ASSERT_EQ(below.causes.size(), 1u);
  EXPECT_NE(below.causes.front().text.find("200.0 TFLOP/s executed, 300.0 TFLOP/s of the model"),
            std::string::npos)
      << below.causes.front().text;
}

}  // namespace
}  // namespace assay::spec::audit::utilisation_test
