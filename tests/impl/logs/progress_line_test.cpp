// labels: unit
#include "impl/logs/progress_line.hpp"

#include <gtest/gtest.h>

namespace assay::impl::logs::progress_line_test {
namespace {

TEST(ProgressLineImpl, SaysShareRateAndTheTimeThatIsLeft) {
  EXPECT_EQ(progress_text("checking token ids", std::int64_t{1} << 30, std::int64_t{4} << 30, 2),
            "checking token ids  25 % of 4.00 GiB, 537 MB/s, 6.00 s left");
  EXPECT_EQ(progress_text("work", 0, 100, 5), "work  0 % of 100 B, 0 B/s");
  EXPECT_EQ(progress_text("work", 100, 100, 1), "work  100 % of 100 B, 100 B/s, 0.00 s left");
}

}  // namespace
}  // namespace assay::impl::logs::progress_line_test
