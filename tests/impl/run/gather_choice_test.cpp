// labels: unit
// parallel.gather=copy_engines where it cannot work.
#include "impl/run/gather_choice.hpp"

#include <gtest/gtest.h>

#include "impl/parallel/make_parameters.hpp"
#include "spec/error.hpp"
#include "tests/impl/parallel/forwarding_communicator.hpp"
#include "tests/impl/parallel/thread_ranks.hpp"
#include "tests/support/tiny_models.hpp"

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

/// What a communicator is asked to copy from, and whether that still holds.
struct Asked {
  std::vector<at::Tensor> memories;
  int handles = 0;
};

class AskedCommunicator : public tests::ForwardingCommunicator {
 public:
  AskedCommunicator(Communicator& inner, Asked& asked) : ForwardingCommunicator(inner), asked_(asked) {}
  std::shared_ptr<void> gather_by_copies(const at::Tensor& memory) override {
    asked_.memories.push_back(memory);
    ++asked_.handles;
    return std::shared_ptr<void>(&asked_, [this](void*) { --asked_.handles; });
  }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<tests::Owning<AskedCommunicator, Asked>>(inner().group(ranks), asked_);
  }

 private:
  Asked& asked_;
};

/// The weights that hold the shares, once, for as long as the layout lives; nothing where all are whole, and
/// nothing unless asked for.
TEST(GatherChoiceImpl, TheShardGroupCopiesFromTheWeights) {
  const spec::ModelSpec model = tests::tiny_model(3);
  for (const DataParallel data :
       {DataParallel::replicate, DataParallel::zero1, DataParallel::shard, DataParallel::hybrid})
    for (const spec::Gather gather : {spec::Gather::multiprocessors, spec::Gather::copy_engines})
      tests::on_thread_ranks(4, [&](Communicator& communicator) {
        Asked asked;
        AskedCommunicator asking(communicator, asked);
        LayoutGroups groups(asking, spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0));
        const ParameterBuffers buffers =
            allocate(model, Dtype::bf16, at::kCPU, Dtype::f32, groups.layout(), groups.shard().rank());
        auto parameters = make_parameters(buffers, model, groups, at::kFloat, gather);
        const int wanted = gather == spec::Gather::copy_engines && data != DataParallel::replicate ? 1 : 0;
        EXPECT_EQ(asked.handles, wanted) << spec::to_string(data);
        ASSERT_EQ(asked.memories.size(), static_cast<std::size_t>(wanted)) << spec::to_string(data);
        for (const at::Tensor& memory : asked.memories) EXPECT_TRUE(memory.is_same(buffers.weights));
        parameters.reset();
        EXPECT_EQ(asked.handles, 0) << spec::to_string(data);
      });
}

}  // namespace
}  // namespace assay::impl::run::gather_choice_test
