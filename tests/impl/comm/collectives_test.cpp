// labels: unit parity
// ranks: 1 2 3 4
// The engines that work without a GPU: MPI over this test's ranks, and beside it, on rank 0, those of one
// process.
#include "tests/impl/comm/collectives.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "impl/comm/mpi_communicator.hpp"
#include "impl/comm/store_communicator.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::collectives_test {
namespace {

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_mpi_communicator();
  return *communicator;
}

void expect_all(Communicator& communicator) {
  tests::expect_collectives(communicator, at::kCPU);
  tests::expect_tickets_in_order(communicator, at::kCPU);
  tests::expect_groups(communicator, at::kCPU);
  tests::expect_refusals(communicator, at::kCPU);
}

TEST(CollectivesImpl, MpiSumsScattersAndGathers) { expect_all(world()); }

TEST(CollectivesImpl, MpiNamesWhatItDoesNotReduce) {
  EXPECT_THROW(world().all_reduce_sum(at::zeros({2}, at::kShort)), std::invalid_argument);
  EXPECT_THROW(world().all_reduce_sum(at::zeros({4, 4}).t()), std::invalid_argument);
}

TEST(CollectivesImpl, OneRankGivesItselfWhatItHas) {
  if (world().rank() != 0) return;
  expect_all(*make_self_communicator());
}

TEST(CollectivesImpl, ThreadsOfTestsSumScatterAndGather) {
  if (world().rank() != 0) return;
  for (int ranks : {1, 3, 4}) tests::on_thread_ranks(ranks, expect_all);
}

/// A port of this host that nobody listens on.
int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(s, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(s, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(s);
  return ntohs(address.sin_port);
}

void expect_a_store_for(int ranks) {
  const int port = free_port();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([=] {
      const auto c = make_store_communicator({Launch::By::store, "torchrun", rank, ranks, "127.0.0.1", port});
      EXPECT_EQ(c->engine(), "store");
      for (int round = 0; round < 3; ++round) {
        const auto texts = c->all_gather("rank " + std::to_string(rank));
        for (int r = 0; r < ranks; ++r)
          EXPECT_EQ(texts.at(static_cast<std::size_t>(r)), "rank " + std::to_string(r));
      }
      tests::expect_groups(*c, at::kCPU);
      const at::Tensor sum = at::full({2}, rank + 1, at::kLong);
      c->all_reduce_sum(sum);
      EXPECT_EQ(sum[0].item<std::int64_t>(), ranks * (ranks + 1) / 2);
      EXPECT_THROW(c->all_reduce_sum(at::zeros({1 << 20})), std::invalid_argument);
      c->barrier();
    });
  for (std::thread& thread : threads) thread.join();
}

/// Few read each other's texts; of many rank 0 reads them.
TEST(CollectivesImpl, RanksMeetInAStore) {
  if (world().rank() != 0) return;
  for (const int ranks : {3, 20}) expect_a_store_for(ranks);
}

}  // namespace
}  // namespace assay::impl::collectives_test
