// labels: unit fault
// The store of a job, for a thread beside the trainer's.
#include "impl/comm/job_store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "impl/comm/gloo_communicator.hpp"
#include "tests/impl/comm/free_port.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::job_store_test {
namespace {

/// What every rank does with its connection.
void exchange(Communicator& communicator, JobStore& store) {
  const std::string mine = std::to_string(communicator.rank());
  std::vector<std::string> keys;
  for (int r = 0; r < communicator.size(); ++r) keys.push_back("of" + std::to_string(r));
  store.set("of" + mine, "text\0of " + mine);
  if (communicator.rank() == 0) store.set("first", "");
  EXPECT_EQ(store.get(keys).size(), keys.size());
  EXPECT_EQ(store.get({"of" + mine}).front(), "text\0of " + mine);
  for (int turn = 0; turn < communicator.size(); ++turn) {
    if (turn == communicator.rank()) store.set_first("first", mine), store.get({"first"});
    communicator.barrier();
    EXPECT_EQ(store.get({"first"}).front(), "0");
  }
  communicator.barrier();  // rank 0's store ends with its JobStore
}

TEST(JobStoreImpl, EachConnectionHasKeysOfItsOwn) {
  tests::on_thread_ranks(3, [](Communicator& communicator) {
    exchange(communicator, *connect_to_job_store(communicator));
    exchange(communicator, *connect_to_job_store(communicator));
  });
}

/// A rank waits in a collective for another; its second connection goes on meanwhile.
TEST(JobStoreImpl, ACollectiveThatWaitsDelaysNothing) {
  const int port = tests::free_port();
  const auto rank = [port](int number) {
    const auto communicator = make_gloo_communicator({.launcher = "torchrun",
                                                      .rank = number,
                                                      .size = 2,
                                                      .host = "127.0.0.1",
                                                      .port = port,
                                                      .keys = "assay/"},
                                                     std::chrono::seconds(10));
    const auto store = connect_to_job_store(*communicator);
    exchange(*communicator, *store);
    if (number == 1) {
      auto waits = std::async(std::launch::async, [&] { communicator->barrier(); });
      store->set("it waits", "yes");
      EXPECT_EQ(store->get({"go on"}).front(), "yes");
      EXPECT_NE(waits.wait_for(std::chrono::milliseconds(100)), std::future_status::ready);
      store->set("it still waits", "yes");
      waits.get();
    } else {
      store->get({"it waits"});
      store->set("go on", "yes");
      store->get({"it still waits"});
      communicator->barrier();
    }
  };
  auto other = std::async(std::launch::async, [&] { rank(1); });
  rank(0);
  other.get();
}

/// What the watch relies on: the end of rank 0's process is an error at once.
TEST(JobStoreImpl, AStoreThatIsGoneIsAnError) {
  tests::on_thread_ranks(2, [](Communicator& communicator) {
    const auto store = connect_to_job_store(communicator);
    store->set(std::to_string(communicator.rank()), "here");
    store->get({"0", "1"});
    communicator.barrier();
    if (communicator.rank() == 0) dynamic_cast<tests::ThreadCommunicator&>(communicator).end_store();
    communicator.barrier();
    if (communicator.rank() == 1) {
      EXPECT_ANY_THROW(store->get({"0"}));
    }
  });
}

}  // namespace
}  // namespace assay::impl::job_store_test
