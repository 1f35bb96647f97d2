// labels: unit cli fault
#include "impl/report/waterfall.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "impl/report/write_report.hpp"
#include "spec/error.hpp"
#include "spec/record/write.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::report::waterfall_test {
namespace {

namespace fs = std::filesystem;

/// A step of one second; `gemms` and `gate` may be planted wrong.
std::string json(double gemms = 0.2, double gate = 0.9, const std::string& schema = "assay.bench.step/1",
                 const std::string& mfu = "0.65") {
  return "{\"schema\":\"" + schema +
         "\",\"device\":\"NVIDIA H200\",\"model\":\"llama-1.36b <b>\",\"micro\":24,\"sequence_length\":2048,"
         "\"dtype\":\"bf16\",\"step_seconds\":1,\"mfu\":" +
         mfu + ",\"waterfall\":[" +
         (mfu == "null" ? "" : "{\"name\":\"exact FLOPs at the peak\",\"seconds\":0.65},") +
         "{\"name\":\"GEMMs\",\"seconds\":" + std::to_string(gemms) +
         "},{\"name\":\"gaps\",\"seconds\":0.15}],\"between_seconds\":0.1,\"parts\":[{\"name\":\"gate_up "
         "forward\",\"seconds\":" +
         std::to_string(gate) + ",\"roofline_share\":0.8}]}";
}

class WaterfallReport : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(scratch.path() / "waterfall.json") << text; }
  tests::Scratch scratch;
};

TEST_F(WaterfallReport, ReadsWhatBenchStepWrites) {
  EXPECT_FALSE(read_waterfall(scratch.path()));
  write(json());
  const auto picture = read_waterfall(scratch.path());
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->subject, "llama-1.36b <b>, 24 x 2,048 tokens a micro-batch, bf16, NVIDIA H200");
  EXPECT_DOUBLE_EQ(picture->mfu.value(), 0.65);
  ASSERT_EQ(picture->bars.size(), 3u);
  EXPECT_DOUBLE_EQ(picture->ops.at(0).roofline_share.value(), 0.8);
}

TEST_F(WaterfallReport, DrawsEveryBarFromThePeakDownToTheMfu) {
  write(json());
  const std::string html = where_the_time_goes(read_waterfall(scratch.path()));
  for (const char* word :
       {"Where the time goes", "From the peak to the achieved MFU", "achieved MFU", "65.0 %",
        "width:80.00%\"></span><span class=\"part c0\" style=\"width:20.00%\"",  // 0.8 to 1: gemms
        "width:65.00%\"></span><span class=\"part c1\" style=\"width:15.00%\"",  // 0.65 to 0.8: gaps
        "gate_up forward", "80.0 %", "llama-1.36b &lt;b&gt;"})
    EXPECT_NE(html.find(word), std::string::npos) << word << "\n" << html;
  EXPECT_EQ(where_the_time_goes({}), "");
}

TEST_F(WaterfallReport, WithoutAPeakThereIsNoMfu) {
  write(json(0.85, 0.9, "assay.bench.step/1", "null"));
  const std::string html = where_the_time_goes(read_waterfall(scratch.path()));
  EXPECT_NE(html.find("Shares of the step"), std::string::npos);
  EXPECT_EQ(html.find("MFU"), std::string::npos);
}

TEST_F(WaterfallReport, APlantedWrongPartIsNotDrawnAndTheReportSaysWhy) {
  for (const std::string& wrong : {json(0.25), json(0.2, 0.7)}) {
    write(wrong);
    EXPECT_THROW(read_waterfall(scratch.path()), SpecError);
  }
  write(json(0.2, 0.9, "assay.bench.step/9"));
  EXPECT_THROW(read_waterfall(scratch.path()), UserError);
  write("{");
  EXPECT_THROW(read_waterfall(scratch.path()), UserError);

  write(json(0.25));
  std::ofstream record(scratch.path() / "run.jsonl");
  record << spec::record::to_json(tests::example_start()) << "\n"
         << spec::record::to_json(tests::example_step(1)) << "\n";
  record.close();
  const auto written = write_report({scratch.path().string()}, "");
  ASSERT_FALSE(written.faults.empty());
  EXPECT_NE(written.faults.back().find("the picture of a step is left out: waterfall_c1"), std::string::npos)
      << written.faults.back();
}

}  // namespace
}  // namespace assay::impl::report::waterfall_test
