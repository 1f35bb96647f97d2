// labels: unit
// parallel.gather=copy_engines where it cannot work.
#include "impl/run/gather_choice.hpp"

#include <gtest/gtest.h>

#include "spec/error.hpp"
#include "tests/impl/parallel/thread_ranks.hpp"

namespace assay::impl::run::gather_choice_test {
namespace {

using spec::DataParallel;

std::string refusal_on_cpu(spec::Gather gather) {
  spec::RunConfig config;
  config.data_parallel = DataParallel::shard;
  config.gather = gather;
  const auto self = make_self_communicator();
  try {
    refuse_gather(config, spec::layout_of(DataParallel::shard, 1), at::kCPU, *self);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(GatherChoiceImpl, TheCpuHasNoCopyEngines) {
  EXPECT_NE(refusal_on_cpu(spec::Gather::copy_engines).find("this run is on the CPU"), std::string::npos);
  EXPECT_EQ(refusal_on_cpu(spec::Gather::multiprocessors), "");
}

TEST(GatherChoiceImpl, SharesOfOneCopyAreOnOneHost) {
  const std::vector<std::string> one(4, "a"), two = {"a", "a", "b", "b"};
  const auto reason = [](DataParallel data, const auto& hosts, std::int64_t shard_ranks = 0) {
    return reason_against_copies(spec::layout_of(data, 4, shard_ranks), hosts);
  };
  for (const DataParallel data : {DataParallel::zero1, DataParallel::shard}) {
    EXPECT_EQ(reason(data, one), "");
    const std::string refused = reason(data, two);
    for (const char* word : {"ranks 0 and 2", "run on a and b", "parallel.data=hybrid"})
      EXPECT_NE(refused.find(word), std::string::npos) << refused;
  }
  EXPECT_EQ(reason(DataParallel::hybrid, two, 2), "");
  EXPECT_NE(reason(DataParallel::hybrid, two, 4), "");
  EXPECT_EQ(reason(DataParallel::replicate, two), "");
}

/// Ranks that have no GPUs say so alike, and go on together.
TEST(GatherChoiceImpl, EnginesWithoutGpusRefuse) {
  tests::on_thread_ranks(2, [](Communicator& communicator) {
    try {
      communicator.gather_by_copies({});
      ADD_FAILURE() << "not refused";
    } catch (const AgreedError& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(text.find("these 2 ranks go by " + communicator.engine()), std::string::npos) << text;
      EXPECT_NE(text.find("give parallel.gather=multiprocessors"), std::string::npos) << text;
    }
    communicator.barrier();
  });
  EXPECT_EQ(make_self_communicator()->gather_by_copies({}), nullptr) << "one rank gathers nothing";
}

}  // namespace
}  // namespace assay::impl::run::gather_choice_test
