// labels: unit property
// Gradients that are summed over ranks in bf16: how many rounded copies are in flight, and how much memory
// they take where memory comes back late.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "spec/plan/plan.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::rounded_sums_test {
namespace {

using spec::DataParallel;

/// Of one rank.
struct Rounded {
  std::vector<at::Tensor> held;    ///< every copy that a collective was given
  std::size_t most_in_flight = 0;  ///< of one group of ranks
  std::int64_t begun = 0;

  /// Of the memory behind the copies. [B]
  std::int64_t bytes() const {
    std::vector<const void*> seen;
    std::int64_t sum = 0;
    for (const at::Tensor& copy : held) {
      const at::Storage& memory = copy.storage();
      if (std::find(seen.begin(), seen.end(), memory.data()) != seen.end()) continue;
      seen.push_back(memory.data());
      sum += static_cast<std::int64_t>(memory.nbytes());
    }
    return sum;
  }
};

/// Keeps the copies that it is given, as a GPU's allocator does until their stream has come to their
/// reduction: by then the host has given it the whole backward pass.
class HoldingCommunicator : public tests::ForwardingCommunicator {
 public:
  HoldingCommunicator(Communicator& inner, Rounded& rounded)
      : ForwardingCommunicator(inner), rounded_(rounded) {}

  Ticket begin(const Request& request) override {
    const Ticket ticket = ForwardingCommunicator::begin(request);
    return spec::facts_of(request.collective).reduces ? count(request.input, ticket) : ticket;
  }
  void wait(Ticket ticket) override {
    while (!in_flight_.empty() && in_flight_.front() <= ticket) in_flight_.pop_front();
    ForwardingCommunicator::wait(ticket);
  }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<tests::Owning<HoldingCommunicator, Rounded>>(inner().group(ranks), rounded_);
  }

 private:
  Ticket count(const at::Tensor& tensor, Ticket ticket) {
    if (tensor.scalar_type() != at::kBFloat16) return ticket;
    rounded_.held.push_back(tensor);
    in_flight_.push_back(ticket);
    rounded_.most_in_flight = std::max(rounded_.most_in_flight, in_flight_.size());
    ++rounded_.begun;
    return ticket;
  }

  Rounded& rounded_;
  std::deque<Ticket> in_flight_;
};

std::int64_t planned(const spec::ModelSpec& model, const spec::Layout& layout) {
  spec::memory::Setting setting;
  setting.model = model, setting.layout = layout, setting.dtype = Dtype::bf16, setting.rounded_sums = true;
  setting.sequence_length = 1;
  std::int64_t bytes = 0;
  for (const spec::memory::Item& item : spec::memory::plan(setting).items)
    if (item.name.starts_with("rounded_")) bytes += item.bytes.to_int64();
  return bytes;
}

TEST(RoundedSumsImpl, TwoCopiesAreInFlightAndTakeWhatIsPlanned) {
  spec::ModelSpec model = tests::tiny_model(3);
  model.layers = 6;
  const tests::LayoutCase c{.seed = 3, .micro = 1, .accumulation = 2};
  for (const spec::Layout& layout :
       {spec::layout_of(DataParallel::replicate, 2), spec::layout_of(DataParallel::zero1, 2),
        spec::layout_of(DataParallel::shard, 2), spec::layout_of(DataParallel::hybrid, 4, 2)}) {
    const auto whole = tests::whole_batch(c, layout.ranks, 0);
    tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
      Rounded rounded;
      HoldingCommunicator holding(communicator, rounded);
      tests::StepRunner runner(model, Dtype::bf16, at::kCPU, holding, layout, tests::layout_settings(),
                               c.seed, Dtype::f32, /*wire=*/Dtype::bf16);
      for (int step = 0; step < 2; ++step)
        runner.step(tests::dealt(whole, c, layout.ranks, communicator.rank()),
                    static_cast<double>(whole.valid_tokens()), 1e-3);
      const auto where = spec::to_string(layout.data);
      EXPECT_GE(rounded.begun, 2 * (model.layers + 2)) << where << ": every block of both steps";
      EXPECT_EQ(rounded.most_in_flight, 2u) << where;
      EXPECT_EQ(rounded.bytes(), planned(model, layout)) << where;
    });
  }
}

}  // namespace
}  // namespace assay::impl::rounded_sums_test
