// labels: unit fault
// Ranks that meet at a store and do not do the same are told, and nothing is written past a tensor.
#include "impl/parallel/store_communicator.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace assay::impl::store_communicator_test {
namespace {

TEST(StoreCommunicatorImpl, ATextWhereAnotherRankAddsNumbersIsRefused) {
  const int port = 41000 + static_cast<int>(::getpid() % 20000);
  const auto rank = [&](int number) {
    return make_store_communicator({Launch::By::store, "torchrun", number, 2, "127.0.0.1", port},
                                   std::chrono::seconds(10));
  };
  std::thread other([&] {
    const auto communicator = rank(1);
    communicator->all_gather(std::string(4096, 'x'));
    communicator->barrier();
  });
  const auto communicator = rank(0);
  const at::Tensor numbers = at::zeros({2}, at::kDouble);
  try {
    communicator->all_reduce_sum(numbers);
    ADD_FAILURE() << "a text was added to numbers";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 exchanges 16 bytes, rank 1 gives 4096"),
              std::string::npos)
        << error.what();
  }
  communicator->barrier();
  other.join();
}

}  // namespace
}  // namespace assay::impl::store_communicator_test
