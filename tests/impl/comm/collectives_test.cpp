// labels: unit parity
// ranks: 1 2 3 4
// The engines that work without a GPU: Gloo over this test's ranks, and beside it, on rank 0, those of one
// process.
#include "tests/impl/comm/collectives.hpp"

#include <numeric>
#include <thread>

#include "impl/comm/gloo_communicator.hpp"
#include "impl/comm/max_keys.hpp"
#include "impl/comm/staged_communicator.hpp"
#include "impl/comm/traced_communicator.hpp"
#include "impl/health/watched_communicator.hpp"
#include "tests/impl/comm/forwarding_communicator.hpp"
#include "tests/impl/comm/free_port.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::collectives_test {
namespace {

Communicator& world() {
  static const std::unique_ptr<Communicator> communicator = make_communicator();
  return *communicator;
}

/// All ranks again, with messages of their own.
std::unique_ptr<Communicator> another_world() {
  std::vector<std::int64_t> all(static_cast<std::size_t>(world().size()));
  std::iota(all.begin(), all.end(), 0);
  return world().group(all);
}

void expect_all(Communicator& communicator) {
  tests::expect_collectives(communicator, at::kCPU);
  tests::expect_tickets_in_order(communicator, at::kCPU);
  tests::expect_groups(communicator, at::kCPU);
  tests::expect_refusals(communicator, at::kCPU);
  tests::expect_maxima_and_messages(communicator, at::kCPU);
  tests::expect_all_kinds_in_flight(communicator, at::kCPU);
  tests::expect_messages_in_groups(communicator, at::kCPU);
  tests::expect_refused_messages(communicator, at::kCPU);
}

TEST(CollectivesImpl, RanksSumScatterAndGather) {
  EXPECT_EQ(world().engine(), world().size() == 1 ? "self" : "gloo");
  expect_all(world());
}

TEST(CollectivesImpl, NamesWhatItDoesNotReduce) {
  if (world().size() == 1) return;  // which has nothing to reduce
  EXPECT_THROW(world().all_reduce_sum(at::zeros({2}, at::kShort)), std::invalid_argument);
  EXPECT_THROW(world().all_reduce_max(at::zeros({2}, at::kShort)), std::invalid_argument);
  EXPECT_THROW(world().all_reduce_sum(at::zeros({4, 4}).t()), std::invalid_argument);
  EXPECT_THROW(world().begin_reduce_scatter_sum(at::zeros({4 * world().size()}, at::kShort),
                                                at::zeros({4}, at::kShort)),
               std::invalid_argument);
  // What was refused is not waited for.
  EXPECT_NO_THROW(world().all_reduce_sum(at::zeros({2})));
}

/// On the CPU the stages are copies as they are beside a GPU: until a ticket is waited for, a tensor keeps
/// what it had.
TEST(CollectivesImpl, StagedGoesThroughCopies) {
  const auto staged = make_staged_communicator(another_world(), at::kCPU);
  EXPECT_EQ(staged->engine(), "staged (through the host, for tests)");
  expect_all(*staged);
  const at::Tensor sum = at::full({8}, world().rank() + 1, at::kFloat), before = sum.clone();
  const auto ticket = staged->begin_all_reduce_sum(sum);
  EXPECT_TRUE(at::equal(sum, before));
  staged->wait(ticket);
  EXPECT_TRUE(at::equal(sum, at::full_like(sum, world().size() * (world().size() + 1) / 2)));
}

TEST(CollectivesImpl, TheEnvironmentAsksForStaged) {
  for (const auto& [value, wanted] : std::vector<std::pair<const char*, bool>>{
           {nullptr, false}, {"", false}, {"nccl", false}, {"staged", true}}) {
    value ? setenv("ASSAY_COMMUNICATOR", value, 1) : unsetenv("ASSAY_COMMUNICATOR");
    EXPECT_EQ(staged_is_wanted(), wanted) << (value ? value : "unset");
  }
  setenv("ASSAY_COMMUNICATOR", "gloo", 1);
  EXPECT_THROW(staged_is_wanted(), AgreedError);
  unsetenv("ASSAY_COMMUNICATOR");
}

/// What watches, counts or forwards changes nothing.
TEST(CollectivesImpl, WatchedAndCountedAreAsBare) {
  Row row;
  expect_all(*make_watched_communicator(another_world(), row));
  spec::Volume volume;
  tests::CountingCommunicator counting(world(), volume);
  expect_all(counting);
}

TEST(CollectivesImpl, AWatchNotesMessages) {
  Row row;
  const auto watched = make_watched_communicator(make_self_communicator(), row);
  const at::Tensor rows = at::ones({4, 2}, at::kDouble), room = at::zeros_like(rows);
  watched->begin_exchange({.sends = {{rows, 0}}, .receives = {{room, 0}}});
  EXPECT_EQ(row.view().collective, spec::Collective::exchange);
  EXPECT_EQ(row.view().bytes, 128);
  watched->begin_all_to_all(rows, {4}, room, {4});
  EXPECT_EQ(row.view().collective, spec::Collective::all_to_all);
  EXPECT_EQ(row.view().bytes, 64) << "what it sends, as in a step's volume";
}

/// An engine that has its own way to bring a tensor to the host.
class Bringing final : public tests::ForwardingCommunicator {
 public:
  explicit Bringing(Communicator& inner) : ForwardingCommunicator(inner), inner_(inner) {}
  at::Tensor received(Ticket, const at::Tensor&) override { return at::full({1}, 7.0); }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>&) override {
    return std::make_unique<Bringing>(inner_);
  }

 private:
  Communicator& inner_;
};

/// Otherwise NCCL's stream of kernels would wait where the host alone has to.
TEST(CollectivesImpl, AnObservedEngineBringsTensorsToTheHostInItsOwnWay) {
  const auto self = make_self_communicator();
  Row row;
  const auto watched = make_watched_communicator(std::make_unique<Bringing>(*self), row);
  const auto traced = make_traced_communicator(*watched), group = traced->group({0});
  for (Communicator* each : {watched.get(), traced.get(), group.get()}) {
    const at::Tensor tensor = at::zeros({1});
    EXPECT_EQ(each->received(each->begin_all_reduce_sum(tensor), tensor).item<double>(), 7);
    EXPECT_FALSE(row.view().waits);
  }
}

TEST(CollectivesImpl, TracedIsAsBare) { expect_all(*make_traced_communicator(world())); }

TEST(CollectivesImpl, OneRankSendsAndReceivesInOneCall) {
  const at::Tensor tensor = at::ones({2});
  EXPECT_THROW(make_self_communicator()->begin_send(tensor, 0), std::invalid_argument);
}

/// Of all pairs of numbers the larger one has the larger key, and each comes back as it was.
TEST(CollectivesImpl, KeysOfMaximaAreInTheOrderOfNumbers) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const double infinity = std::numeric_limits<double>::infinity();
    const at::Tensor ascending =
        at::tensor({-infinity, -3e38, -1.0, -1e-38, -0.0, 0.0, 1e-38, 1.0, 3e38, infinity, std::nan("")},
                   at::kDouble)
            .to(type);
    const at::Tensor keys = max_keys(ascending);
    EXPECT_TRUE(keys.slice(0, 1).gt(keys.slice(0, 0, -1)).all().item<bool>()) << keys;
    EXPECT_TRUE(at::equal(max_keys(ascending.neg().slice(0, -1)), keys.slice(0, -1))) << "-NaN";
    const at::Tensor back = at::zeros_like(ascending);
    write_numbers(keys, back);
    EXPECT_TRUE(at::equal(back.slice(0, 0, -1), ascending.slice(0, 0, -1)));
    EXPECT_TRUE(at::equal(back.signbit().slice(0, 0, -1), ascending.signbit().slice(0, 0, -1)));
    EXPECT_TRUE(back[-1].isnan().item<bool>());
  }
}

TEST(CollectivesImpl, OneRankGivesItselfWhatItHas) {
  if (world().rank() != 0) return;
  expect_all(*make_self_communicator());
}

TEST(CollectivesImpl, ThreadsOfTestsSumScatterAndGather) {
  if (world().rank() != 0) return;
  for (int ranks : {1, 3, 4}) tests::on_thread_ranks(ranks, expect_all);
}

/// Ranks that are threads of this process. A sum of few numbers goes through rank 0 where they are many.
void expect_gloo_for(int ranks) {
  const int port = tests::free_port();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([=] {
      const auto c = make_gloo_communicator({.launcher = "torchrun",
                                             .rank = rank,
                                             .size = ranks,
                                             .host = "127.0.0.1",
                                             .port = port,
                                             .keys = "assay/"});
      EXPECT_EQ(c->store(), std::pair(std::string("127.0.0.1"), static_cast<std::uint16_t>(port)));
      for (int round = 0; round < 3; ++round) {
        const std::string zero("\0a\n", 3);
        const auto texts = c->all_gather(zero + std::string(static_cast<std::size_t>(rank), 'x'));
        for (int r = 0; r < ranks; ++r)
          EXPECT_EQ(texts.at(static_cast<std::size_t>(r)),
                    zero + std::string(static_cast<std::size_t>(r), 'x'));
      }
      for (const std::int64_t n : {2, 1 << 16}) {
        const at::Tensor sum = at::full({n}, rank + 1, at::kLong);
        c->all_reduce_sum(sum);
        EXPECT_TRUE(at::equal(sum, at::full_like(sum, ranks * (ranks + 1) / 2)));
      }
      tests::expect_maxima(*c, at::kCPU, {0, 1, 100});
      c->barrier();
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(CollectivesImpl, FewRanksAndMany) {
  if (world().rank() != 0) return;
  for (const int ranks : {3, 20}) expect_gloo_for(ranks);
}

}  // namespace
}  // namespace assay::impl::collectives_test
