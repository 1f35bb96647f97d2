// labels: unit
// What our own record says of each of its numbers (spec/record/record.md) is held: fields, ranges, counts.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "spec/audit/hypotheses.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/flops/exact.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/read_text.hpp"
#include "tests/support/refusal.hpp"

namespace assay::spec::audit::documented_numbers_test {
namespace {

/// Twelve steps of a built-in model on one device of 1 PFLOP/s; MFU by record.md.
struct Own {
  record::RunStart start = tests::example_start();
  record::Step step = tests::example_step(1);
  double mfu_factor = 1;

  Own() {
    const ModelSpec model = find_model("llama3-8b");
    start.model = model.name;
    start.model_definition.reset();
    start.vocab = model.vocab;
    start.parameters = parameter_count(model).to_int64();
    start.flops_per_token = exact_flops_per_token(model, start.batch.sequence_length).to_int64();
    start.peak_flops = 1e15;
    start.steps = 12;
    step.hfu.reset();
  }
  std::string text() const {
    std::string out = record::to_json(start) + "\n";
    for (int i = 1; i <= 12; ++i) {
      record::Step one = step;
      one.step = i;
      one.mfu = mfu_factor * one.tokens_per_second *
                exact_flops_per_token(find_model("llama3-8b"), start.batch.sequence_length).to_double() /
                1e15;
      out += record::to_json(one) + "\n";
    }
    return out;
  }
  RunRecord read() const { return tests::read_text(text()); }
  Result of(std::string_view id) const { return judge(id, read()); }
};

TEST(DocumentedNumbersSpec, AGradientNormIsNeverNegativeHere) {
  Own own;
  EXPECT_EQ(own.of("values_possible").verdict, Verdict::holds) << own.of("values_possible").note;
  own.step.gradient_norm = -1;
  const Result told = own.of("values_possible");
  ASSERT_EQ(told.verdict, Verdict::contradicts);
  EXPECT_EQ(told.contradicted, 12);
}

TEST(DocumentedNumbersSpec, NormsThatDeepSpeedGaveUpAreTold) {
  std::string table = "{\"step\": 1, \"loss\": 9.1, \"grad_norm\": 1.5}\n";
  for (int i = 2; i < 9; ++i)
    table += "{\"step\": " + std::to_string(i) + ", \"loss\": 9.0, \"grad_norm\": -1}\n";
  const Result told = judge("values_possible", tests::read_text(table));
  EXPECT_EQ(told.verdict, Verdict::holds);
  EXPECT_NE(told.note.find("7 gradient norms are -1, and not judged"), std::string::npos) << told.note;
}

TEST(DocumentedNumbersSpec, ClippingOnlyShortens) {
  for (const double wrong : {1.7, -0.5}) {
    Own own;
    own.step.clip_coefficient = wrong;
    const Result told = own.of("values_possible");
    ASSERT_EQ(told.verdict, Verdict::contradicts) << wrong;
    EXPECT_EQ(told.contradicted, 12);
    EXPECT_EQ(told.causes.at(0).text, wrong < 0 ? "clip_coefficient is below 0: its own format rules it out"
                                                : "clip_coefficient is above 1: its own format rules it out");
  }
  Own whole;
  whole.step.clip_coefficient = 1;
  EXPECT_EQ(whole.of("values_possible").verdict, Verdict::holds);
}

/// It is the square of a logarithm, times a coefficient.
TEST(DocumentedNumbersSpec, AZLossIsNotBelowZero) {
  Own own;
  own.step.z_loss = 0;
  EXPECT_EQ(own.of("values_possible").verdict, Verdict::holds);
  own.step.z_loss = -0.001;
  EXPECT_EQ(own.of("values_possible").verdict, Verdict::contradicts);
}

TEST(DocumentedNumbersSpec, EverySizeIsOneAtTheLeast) {
  Own own;
  own.start.batch.micro = 0;
  EXPECT_EQ(own.of("values_possible").causes.at(0).id, "size_impossible");
  own = Own();
  own.start.batch.accumulation = 0;
  EXPECT_EQ(own.of("values_possible").causes.at(0).id, "size_impossible");
  own = Own();
  own.start.batch.sequences = -1;
  EXPECT_EQ(own.of("values_possible").causes.at(0).id, "size_impossible");
}

TEST(DocumentedNumbersSpec, ParametersAreCountedToTheLast) {
  Own own;
  EXPECT_EQ(own.of("parameters").verdict, Verdict::holds);
  for (const int more : {1, -1}) {
    own.start.parameters = parameter_count(find_model("llama3-8b")).to_int64() + more;
    EXPECT_EQ(own.of("parameters").verdict, Verdict::contradicts) << more;
  }
}

TEST(DocumentedNumbersSpec, AWrongCountOfFlopsIsOneWrongNumber) {
  Own own;
  own.start.flops_per_token = own.start.flops_per_token * 6 / 5;
  EXPECT_EQ(own.of("flops_per_token").verdict, Verdict::contradicts);
  EXPECT_EQ(own.of("mfu").verdict, Verdict::holds);
  own.mfu_factor = 1.2;  // made of the wrong count
  EXPECT_EQ(own.of("mfu").verdict, Verdict::holds);
  own.mfu_factor = 1.5;  // of neither
  EXPECT_EQ(own.of("mfu").verdict, Verdict::contradicts);
  EXPECT_NEAR(own.of("mfu").off_by, 1.5 / 1.2, 1e-6);  // of what the record states
}

std::string with(std::string text, const std::string& part, const std::string& other, bool all) {
  std::size_t at = all ? 0 : text.rfind(part);
  for (; (at = text.find(part, at)) != std::string::npos; at += other.size())
    text.replace(at, part.size(), other);
  return text;
}

TEST(DocumentedNumbersSpec, ARecordOfOtherFieldsIsRefused) {
  const std::string whole = Own().text();
  tests::expect_refused(with(whole, "z_loss", "q_loss", true), ExitCode::bad_data,
                        "line 2: the field \"z_loss\" is missing");
  tests::expect_refused(with(whole, "\"loss\"", "\"more\":2,\"loss\"", true), ExitCode::bad_data,
                        "line 2: unknown field \"more\"");
  // One line among others is damaged.
  const RunRecord one = tests::read_text(with(whole, "z_loss", "q_loss", false));
  EXPECT_EQ(one.steps.size(), 11u);
  EXPECT_EQ(one.unread_lines, 1);
}

}  // namespace
}  // namespace assay::spec::audit::documented_numbers_test
