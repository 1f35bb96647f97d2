// labels: unit property
#include "spec/batch/batch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec::batch_test {
namespace {

std::string error_of(std::int64_t sequences, std::int64_t micro, std::int64_t ranks) {
  try {
    batch_of(sequences, micro, ranks);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

TEST(BatchSpec, FollowsTheSpecExample) {
  EXPECT_EQ(batch_of(48, 8, 2), (Batch{.sequences = 48, .micro = 8, .ranks = 2, .accumulation = 3}));
  EXPECT_EQ(error_of(36, 8, 2),
            "batch.sequences = 36 is not a multiple of batch.micro = 8 times 2 data-parallel ranks = 16: set "
            "batch.sequences to 32 or 48, or batch.micro to 6 or 9");
}

TEST(BatchSpec, CountsTokensPerStep) {
  const Batch batch = batch_of(512, 32, 8);
  EXPECT_EQ(batch.tokens_per_step(2048), Count(1'048'576));
  EXPECT_EQ(batch.sequences_per_rank(), 64);
}

TEST(BatchSpec, MicroZeroIsOnePass) {
  EXPECT_EQ(batch_of(12, 0, 4), (Batch{.sequences = 12, .micro = 3, .ranks = 4, .accumulation = 1}));
  EXPECT_EQ(error_of(13, 0, 4),
            "batch.sequences = 13 is not a multiple of 4 data-parallel ranks: set batch.sequences to "
            "12 or 16");
}

TEST(BatchSpec, SaysWhenNoMicroFits) {
  EXPECT_EQ(error_of(5, 1, 2),
            "batch.sequences = 5 is not a multiple of batch.micro = 1 times 2 data-parallel ranks = 2: set "
            "batch.sequences to 4 or 6 (no batch.micro fits: 5 is not a multiple of 2 ranks)");
  EXPECT_EQ(error_of(4, 8, 1),
            "batch.sequences = 4 is not a multiple of batch.micro = 8 times 1 data-parallel rank = 8: set "
            "batch.sequences to 8, or batch.micro to 4");
}

TEST(BatchSpec, C1RejectsSizesOutOfRange) {
  const std::int64_t large = std::int64_t{1} << 31;
  for (const auto& [sequences, micro, ranks] : {std::array<std::int64_t, 3>{0, 1, 1},
                                                {1, -1, 1},
                                                {1, 1, 0},
                                                {large, 1, 1},
                                                {1, large, 1},
                                                {1, 1, large}})
    EXPECT_EQ(error_of(sequences, micro, ranks), "batch_c1");
}

RC_GTEST_PROP(BatchSpec, DividesExactlyOrNamesValuesThatDo, ()) {
  const auto sequences = *rc::gen::inRange<std::int64_t>(1, 400);
  const auto micro = *rc::gen::inRange<std::int64_t>(1, 40), ranks = *rc::gen::inRange<std::int64_t>(1, 12);
  try {
    const Batch batch = batch_of(sequences, micro, ranks);
    RC_ASSERT(batch.micro * batch.ranks * batch.accumulation == sequences);
  } catch (const UserError& error) {
    RC_ASSERT(sequences % (micro * ranks) != 0);
    // Every number that the message offers must be accepted.
    const std::string text = error.what();
    const auto offered = [&](const std::string& key) {
      std::vector<std::int64_t> values;
      const auto from = text.find(key);
      if (from == std::string::npos) return values;
      std::size_t used = 0;
      std::string rest = text.substr(from + key.size());
      values.push_back(std::stoll(rest, &used));
      rest = rest.substr(used);
      if (rest.substr(0, 4) == " or ") values.push_back(std::stoll(rest.substr(4)));
      return values;
    };
    const auto good_sequences = offered("set batch.sequences to "),
               good_micro = offered("or batch.micro to ");
    RC_ASSERT(!good_sequences.empty());
    for (std::int64_t value : good_sequences) batch_of(value, micro, ranks);
    RC_ASSERT(good_micro.empty() == (sequences % ranks != 0));
    for (std::int64_t value : good_micro) batch_of(sequences, value, ranks);
  }
}

}  // namespace
}  // namespace assay::spec::batch_test
