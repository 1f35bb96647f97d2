// labels: unit property
// What ranks that are left write of a state that they hold in copies, and whether it is one state.
#include "impl/run/survivors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <functional>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/inspect.hpp"
#include "impl/run/state_mark.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/params/layout_state.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::survivors_test {
namespace {

/// Of `ranks` ranks, `of` neighbours hold one copy of the state between them.
std::vector<HeldParts> parts_of(std::int64_t ranks, std::int64_t of) {
  std::vector<HeldParts> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) parts.push_back({rank % of, 0});
  return parts;
}

TEST(SurvivorsImpl, ALonePartIsLostWithItsRank) {
  EXPECT_FALSE(writer_without(parts_of(4, 4), 0, 3));  // parallel.data=shard
  EXPECT_TRUE(writer_without(parts_of(4, 1), 0, 3));   // replicate
  EXPECT_TRUE(writer_without(parts_of(4, 2), 0, 3));   // hybrid
  std::vector<HeldParts> parts = parts_of(4, 1);
  parts[3][1] = 1;
  EXPECT_FALSE(writer_without(parts, 0, 3)) << "its experts";
}

/// The copies of each part that are left are numbered from 0 on, each number once.
RC_GTEST_PROP(SurvivorsImpl, WhatIsLeftOfEachPartIsDealtOnce, ()) {
  const auto of = *rc::gen::inRange<std::int64_t>(1, 5), copies = *rc::gen::inRange<std::int64_t>(2, 5);
  const std::vector<HeldParts> parts = parts_of(of * copies, of);
  const int ranks = static_cast<int>(parts.size()), lost = *rc::gen::inRange(0, ranks);
  std::vector<std::vector<int>> seen(static_cast<std::size_t>(of),
                                     std::vector<int>(static_cast<std::size_t>(copies)));
  int biases = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == lost) continue;
    const auto writer = writer_without(parts, rank, lost);
    RC_ASSERT(writer);
    RC_ASSERT(writer->sets[0].count == copies - (rank % of == lost % of ? 1 : 0));
    ++seen[static_cast<std::size_t>(rank % of)][static_cast<std::size_t>(writer->sets[0].number)];
    biases += writer->biases ? 1 : 0;
  }
  for (std::int64_t part = 0; part < of; ++part)
    for (std::int64_t number = 0; number < copies; ++number)
      RC_ASSERT(seen[static_cast<std::size_t>(part)][static_cast<std::size_t>(number)] ==
                (part == lost % of && number == copies - 1 ? 0 : 1));
  RC_ASSERT(biases == 1);
}

TEST(StateMarkImpl, AStateIsOneAsLongAsItsCountStays) {
  StateMark mark(at::kCPU);
  EXPECT_FALSE(mark.at(mark.count())) << "nothing is loaded";
  mark.is(WholeState{.step = 4, .skipped = 1});
  const std::uint32_t before = mark.count();
  ASSERT_TRUE(mark.at(before));
  EXPECT_EQ(mark.at(before)->step, 4);
  EXPECT_EQ(mark.at(before)->skipped, 1);
  mark.is(std::nullopt);
  EXPECT_NE(mark.count(), before);
  EXPECT_FALSE(mark.at(mark.count())) << "in the middle of an update";
  mark.is(WholeState{.step = 5});
  EXPECT_NE(mark.count(), before);
  EXPECT_EQ(mark.at(mark.count())->step, 5);
  const std::uint32_t after = mark.count();
  mark.is(WholeState{.step = 5, .skipped = 1});  // said again: nothing has changed
  EXPECT_EQ(mark.count(), after);
}

/// What is said of a state after step 4 whose rank `lost` is gone; `meanwhile`: done once the save has begun.
std::string said_without(
    int lost, const spec::ModelSpec& model, const tests::StateLayout& layout, std::uint64_t seed,
    const std::string& folder, const std::function<void(StateMark&)>& meanwhile = [](StateMark&) {}) {
  std::string said;
  tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
    tests::RankState state(model, communicator, layout, Dtype::f32);
    state.fill(seed);
    StateMark mark(at::kCPU);
    mark.is(WholeState{.step = 4});
    const Survivors left(state.groups, state.buffers, mark, [&](const WholeState& whole) {
      meanwhile(mark);
      return Survivors::Target{.state = {.step = whole.step, .tokens = 9, .config = "a"}, .keep = 5};
    });
    if (communicator.rank() == lost) return;
    const std::string mine = left.save(lost, false, 0, folder);
    if (communicator.rank() == (lost == 0 ? 1 : 0)) said = mine;
  });
  return said;
}

/// In any layout, whichever rank is lost: the whole state, bit for bit, or none.
RC_GTEST_PROP(SurvivorsImpl, WhatIsSavedIsTheWholeState, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const bool experts = *rc::gen::arbitrary<bool>();
  const spec::ModelSpec model = tests::case_model({.seed = seed,
                                                   .tensor = seed % 2 ? 4 : 2,
                                                   .vocab = 11 + static_cast<std::int64_t>(seed % 13),
                                                   .experts = experts,
                                                   .expert = experts && seed % 3 == 0 ? 2 : 1});
  std::vector<tests::StateLayout> layouts = tests::state_layouts(model, 6);
  std::erase_if(layouts, [](const auto& each) { return each.ranks() == 1; });
  const tests::StateLayout from = *rc::gen::elementOf(layouts), to = *rc::gen::elementOf(layouts);
  const int lost = *rc::gen::inRange(0, from.ranks());
  RC_LOG() << from.name() << " without " << lost << " -> " << to.name() << "\n";
  const tests::Scratch scratch;
  const std::string said = said_without(lost, model, from, seed, scratch.path().string());
  const auto found = checkpoint::newest(scratch.path().string());
  const bool copies = from.layout.ranks > 1 && (from.layout.data == spec::DataParallel::replicate ||
                                                from.layout.data == spec::DataParallel::hybrid);
  if (!experts) RC_ASSERT(found.has_value() == copies);
  RC_ASSERT((said.find("step 4 is saved by the ranks that are left") == 0) == found.has_value());
  RC_ASSERT((said.find("no other rank had what rank " + std::to_string(lost) + " held") == 0) !=
            found.has_value());
  if (!found) return;
  RC_ASSERT(checkpoint::verify_checkpoint(*found).size() == 1u);
  tests::on_thread_ranks(to.ranks(), [&](Communicator& communicator) {
    tests::RankState state(model, communicator, to, Dtype::f32);
    checkpoint::load(*found, state.buffers, state.groups);
    RC_ASSERT(state.first_other(seed) == "");
  });
}

/// The thread that trains goes on while the state is written.
TEST(SurvivorsImpl, AStateThatChangesMeanwhileIsNotSaved) {
  const spec::ModelSpec model = tests::case_model({.seed = 1, .tensor = 1, .vocab = 11});
  const tests::StateLayout copies{.layout = spec::layout_of(spec::DataParallel::replicate, 2)};
  const tests::Scratch scratch;
  EXPECT_NE(said_without(1, model, copies, 1, scratch.path().string(),
                         [](StateMark& mark) {
                           mark.is(std::nullopt);
                           mark.is(WholeState{.step = 5});
                         })
                .find("weights were updated while they were saved"),
            std::string::npos);
  EXPECT_FALSE(checkpoint::newest(scratch.path().string()));
  EXPECT_NE(said_without(1, model, copies, 1, scratch.path().string()).find("step 4 is saved"),
            std::string::npos);
}

}  // namespace
}  // namespace assay::impl::run::survivors_test
