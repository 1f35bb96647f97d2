// labels: cli unit
// What `assay bench scaling` says of GPUs by themselves and all together, in words, as JSON and as a picture.
#include "impl/report/scaling_picture.hpp"

#include <gtest/gtest.h>

#include "impl/cli/bench/bench_print_scaling.hpp"

namespace assay::scaling_picture_test {
namespace {

using spec::metrics::ScalingRow;

const std::vector<ScalingRow> rows = {{.ranks = 1,
                                       .layout = "replicate",
                                       .gpu = "GPU-a",
                                       .tokens_per_second_of_rank = 101,
                                       .efficiency = 1.01,
                                       .mfu = {},
                                       .lost_imbalance = -0.01},
                                      {.ranks = 1,
                                       .layout = "replicate",
                                       .gpu = "GPU-b",
                                       .tokens_per_second_of_rank = 99,
                                       .efficiency = 0.99,
                                       .mfu = {},
                                       .lost_imbalance = 0.01},
                                      {.ranks = 4,
                                       .layout = "replicate",
                                       .tokens_per_second_of_rank = 90,
                                       .efficiency = 0.90,
                                       .mfu = 0.5,
                                       .lost_imbalance = 0.01,
                                       .lost_waiting = 0.03,
                                       .lost_compute = 0.05,
                                       .lost_fixed = 0.01}};

TEST(ScalingPicture, EveryPartOfWhatIsLostHasItsColumn) {
  const impl::cli::ScalingStudy study{.steps = 8, .steps_left_out = 3, .rows = rows};
  const std::string text = impl::cli::scaling_text(study);
  EXPECT_NE(text.find("90.00 %  50.00 %   0.00 %    1.00 %   3.00 %   5.00 %   1.00 %"), std::string::npos)
      << text;
  EXPECT_NE(text.find("weak scaling"), std::string::npos);
  EXPECT_NE(text.find("slowest by itself: GPU-b, 99.0 tokens/s, 1.98 % below the fastest\n"),
            std::string::npos)
      << text;
  const std::string json = impl::cli::scaling_json(study);
  EXPECT_NE(json.find("\"lost_imbalance\":0.01,\"lost_waiting\":0.03"), std::string::npos) << json;
  EXPECT_NE(json.find("\"audit_accepts\":true"), std::string::npos);
  EXPECT_NE(json.find("\"gpu\":\"GPU-a\""), std::string::npos) << json;
  EXPECT_EQ(text.find("tensor"), std::string::npos) << text;
  impl::cli::ScalingStudy tensor = study;
  for (ScalingRow& row : tensor.rows) row.tensor_ranks = 2;
  EXPECT_NE(impl::cli::scaling_text(tensor).find("each data-parallel rank is made of 2 tensor ranks\n"),
            std::string::npos);
  const impl::cli::ScalingStudy one{.steps = 8, .steps_left_out = 3, .rows = {rows[0], rows[2]}};
  EXPECT_EQ(impl::cli::scaling_text(one).find("slowest"), std::string::npos) << "of one there is no slowest";
}

TEST(ScalingPicture, EveryRowHasItsBarAndNoPartIsNegative) {
  const std::string picture = impl::report::scaling_picture(rows, /*strong=*/true);
  EXPECT_NE(picture.find("Strong scaling"), std::string::npos);
  for (const char* text : {"101.0 %, 101 tokens/s of a rank", "99.0 %, 99 tokens/s", "4 ranks",
                           "90.0 %, 90 tokens/s", "imbalance", "waiting", "compute", "fixed"})
    EXPECT_NE(picture.find(text), std::string::npos) << text;
  EXPECT_EQ(picture.find("width=\"-"), std::string::npos);
}

}  // namespace
}  // namespace assay::scaling_picture_test
