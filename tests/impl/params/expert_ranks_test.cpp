// labels: parity property
// Expert parallelism in every data layout, on ranks that are threads: five steps in fp64 against the
// reference on the whole batch, losses of routers included, and bytes by collective against the formula.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <filesystem>
#include <mutex>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/params/replica_hash.hpp"
#include "spec/memory/expert_load.hpp"
#include "spec/plan/plan.hpp"
#include "tests/impl/comm/solo_communicator.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/counting_allocator.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::expert_ranks_test {
namespace {

using spec::DataParallel;
using spec::quantise::Recipe;
using tests::LayoutCase;

constexpr DataParallel kinds[] = {DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                  DataParallel::hybrid};

/// What the ranks find, one line each that found something.
std::string found(const LayoutCase& c, const spec::Layout& layout) {
  std::mutex mutex;
  std::string all;
  tests::on_thread_ranks(static_cast<int>(layout.ranks * c.tensor), [&](Communicator& communicator) {
    const std::string mine = tests::difference_from_reference(c, layout, communicator, at::kCPU);
    const std::scoped_lock lock(mutex);
    if (!mine.empty()) all += "rank " + std::to_string(communicator.rank()) + ": " + mine + "\n";
  });
  return all;
}

TEST(ExpertRanksImpl, OfEveryNumberTrainAsTheReference) {
  for (const std::int64_t expert : {2, 3, 4, 8})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      LayoutCase c{.seed = seed, .documents = static_cast<tests::Documents>(seed % 2)};
      c.experts = true, c.expert = expert;
      const spec::Layout layout = spec::layout_of(kinds[seed], expert, expert);
      EXPECT_EQ(found(c, layout), "") << tests::describe(c, layout);
    }
}

RC_GTEST_PROP(ExpertRanksImpl, InEveryDataLayoutTrainAsTheReference, ()) {
  static tests::FirstCases cases(40);
  if (cases.over()) return;
  const auto data = *rc::gen::elementOf(std::vector<DataParallel>(std::begin(kinds), std::end(kinds)));
  // Up to 8 data ranks: expert ranks, groups of them in a shard group, shard groups.
  const auto [expert, within, groups] =
      *rc::gen::elementOf(std::vector<std::array<std::int64_t, 3>>{{1, 2, 2},
                                                                   {2, 1, 1},
                                                                   {2, 2, 1},
                                                                   {2, 1, 2},
                                                                   {2, 3, 1},
                                                                   {2, 2, 2},
                                                                   {2, 1, 4},
                                                                   {3, 1, 1},
                                                                   {3, 2, 1},
                                                                   {3, 1, 2},
                                                                   {4, 1, 1},
                                                                   {4, 2, 1},
                                                                   {4, 1, 2}});
  const spec::Layout layout =
      spec::layout_of(data, expert * within * groups, data == DataParallel::hybrid ? expert * within : 0);
  LayoutCase c{.seed = *rc::gen::inRange<std::uint64_t>(0, 1000),
               .micro = *rc::gen::inRange<std::int64_t>(1, 3),
               .accumulation = *rc::gen::inRange<std::int64_t>(1, 4),
               .documents = *rc::gen::element(tests::Documents::whole, tests::Documents::packed),
               .ignored = *rc::gen::element(tests::Ignored::none, tests::Ignored::some,
                                            tests::Ignored::sequences, tests::Ignored::most)};
  c.experts = true, c.expert = expert;
  c.recompute = *rc::gen::elementOf(spec::all_recomputes);
  const std::string all = found(c, layout);
  if (!all.empty()) RC_FAIL(tests::describe(c, layout) + "\n" + all);
}

/// Tensor ranks split attention and dense MLPs, and are among the ranks that hold experts between them.
RC_GTEST_PROP(ExpertRanksImpl, OfTensorRanksTrainAsTheReference, ()) {
  static tests::FirstCases cases(40);
  if (cases.over()) return;
  const auto data = *rc::gen::elementOf(std::vector<DataParallel>(std::begin(kinds), std::end(kinds)));
  // Up to 8 ranks: tensor ranks, data ranks of a shard group, shard groups, expert ranks.
  const auto [tensor, within, groups, expert] =
      *rc::gen::elementOf(std::vector<std::array<std::int64_t, 4>>{{2, 1, 1, 1},
                                                                   {2, 1, 1, 2},
                                                                   {2, 2, 1, 1},
                                                                   {2, 2, 1, 2},
                                                                   {2, 2, 1, 4},
                                                                   {2, 1, 2, 2},
                                                                   {2, 2, 2, 4},
                                                                   {2, 3, 1, 3},
                                                                   {3, 1, 1, 3},
                                                                   {3, 2, 1, 2},
                                                                   {4, 1, 1, 2},
                                                                   {4, 2, 1, 4},
                                                                   {4, 1, 2, 1}});
  const spec::Layout layout =
      spec::layout_of(data, within * groups, data == DataParallel::hybrid ? within : 0);
  LayoutCase c{.seed = *rc::gen::inRange<std::uint64_t>(0, 1000),
               .micro = tensor * *rc::gen::inRange<std::int64_t>(1, 3),
               .accumulation = *rc::gen::inRange<std::int64_t>(1, 4),
               .documents = *rc::gen::element(tests::Documents::whole, tests::Documents::packed),
               .ignored = *rc::gen::element(tests::Ignored::none, tests::Ignored::some,
                                            tests::Ignored::sequences, tests::Ignored::most)};
  c.experts = true, c.expert = expert, c.tensor = tensor;
  c.recompute = *rc::gen::elementOf(spec::all_recomputes);
  const std::string all = found(c, layout);
  if (!all.empty()) RC_FAIL(tests::describe(c, layout) + "\n" + all);
}

/// Every token visits the same expert: all ranks but one have no row.
TEST(ExpertRanksImpl, RanksWithoutATokenTrainAsTheReference) {
  for (const DataParallel data : kinds)
    for (const spec::Recompute recompute : spec::all_recomputes) {
      LayoutCase c{.seed = 9, .micro = 1, .accumulation = 2, .recompute = recompute};
      c.experts = true, c.expert = 4, c.one_expert = true;
      const spec::Layout layout = spec::layout_of(data, 4, 4);
      EXPECT_EQ(found(c, layout), "") << tests::describe(c, layout);
    }
}

/// Of blocks with experts attention is in FP8; a shard gathers them in the compute type, the others as codes.
TEST(ExpertRanksImpl, BesideFp8TrainAsTheReference) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    LayoutCase c{.seed = seed, .micro = 1, .steps = 2, .linear = {.recipe = Recipe::fp8_tensor}};
    c.experts = true, c.expert = seed % 2 == 0 ? 2 : 3;
    const spec::Layout layout = spec::layout_of(kinds[seed], c.expert, c.expert);
    EXPECT_EQ(found(c, layout), "") << tests::describe(c, layout);
  }
}

/// Routed experts too: one scale for the rows of all ranks of an expert group, and for all experts' weights.
/// No sequence of these seeds begins with the same token twice (case_model).
TEST(ExpertRanksImpl, WithExpertsInFp8TrainAsTheReference) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const DataParallel data = kinds[(seed + seed / 4) % 4];
    LayoutCase c{.seed = seed, .micro = 1, .accumulation = 1 + static_cast<std::int64_t>(seed / 4)};
    c.steps = 1, c.experts = true, c.expert = seed == 1 ? 3 : 2;
    c.recompute = spec::all_recomputes[seed % spec::all_recomputes.size()];
    c.linear = {.recipe = Recipe::fp8_tensor,
                .unquantised = seed % 3 == 0 ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{},
                .weights = seed % 2 == 0 ? spec::QuantiseWeights::use : spec::QuantiseWeights::step,
                .experts = true};
    const std::int64_t groups = data == DataParallel::hybrid ? 2 : 1;
    const spec::Layout layout = spec::layout_of(data, groups * c.expert, groups > 1 ? c.expert : 0);
    EXPECT_EQ(found(c, layout), "") << tests::describe(c, layout);
  }
}

/// A rank without rows has no amax of its own.
TEST(ExpertRanksImpl, RanksWithoutATokenTrainInFp8AsTheReference) {
  for (const auto weights : {spec::QuantiseWeights::use, spec::QuantiseWeights::step}) {
    LayoutCase c{.seed = 9, .micro = 1, .steps = 1, .recompute = spec::Recompute::block};
    c.linear = {.recipe = Recipe::fp8_tensor, .weights = weights, .experts = true};
    c.experts = true, c.expert = 3, c.one_expert = true;
    const spec::Layout layout = spec::layout_of(DataParallel::replicate, 3);
    EXPECT_EQ(found(c, layout), "") << tests::describe(c, layout);
  }
}

struct Ranks {
  spec::Layout layout = {};
  std::int64_t expert = 1, tensor = 1;
  int all() const { return static_cast<int>(layout.ranks * tensor); }
  std::string name() const {
    return std::string(spec::to_string(layout.data)) + " of " + std::to_string(layout.ranks) +
           ", experts over " + std::to_string(expert) + ", tensor " + std::to_string(tensor);
  }
};
const std::vector<Ranks> splits = {{},
                                   {spec::layout_of(DataParallel::replicate, 2), 2},
                                   {spec::layout_of(DataParallel::replicate, 4), 2},
                                   {spec::layout_of(DataParallel::zero1, 4), 2},
                                   {spec::layout_of(DataParallel::zero1, 4), 4},
                                   {spec::layout_of(DataParallel::shard, 4), 2},
                                   {spec::layout_of(DataParallel::shard, 4), 4},
                                   {spec::layout_of(DataParallel::hybrid, 8, 4), 2},
                                   {spec::layout_of(DataParallel::replicate, 1), 1, 2},
                                   {spec::layout_of(DataParallel::replicate, 2), 4, 2},
                                   {spec::layout_of(DataParallel::zero1, 2), 2, 2},
                                   {spec::layout_of(DataParallel::shard, 4), 2, 2},
                                   {spec::layout_of(DataParallel::hybrid, 4, 2), 4, 2}};

/// The model of every split, of 4 or 8 experts, that two tensor ranks may split.
LayoutCase case_of(const Ranks& ranks) {
  LayoutCase c{.seed = 10, .ignored = tests::Ignored::some};
  c.experts = true, c.expert = 4, c.tensor = 2;
  c.micro = ranks.tensor, c.accumulation = 8 / ranks.all();
  return c;
}

/// What a run holds, of the whole model.
struct Held {
  std::array<at::Tensor, 4> buffers;
  std::vector<double> losses;
  std::string odd;
};

/// The parameters without the gaps between them, which a buffer put together does not fill.
at::Tensor parameters_of(const at::Tensor& whole, const spec::Inventory& model) {
  std::vector<at::Tensor> parts;
  for (const spec::Parameter& p : model.parameters) parts.push_back(whole.narrow(0, p.offset, p.size));
  return at::cat(parts);
}

/// Trains from the checkpoint `from`, or from the start where it is empty, and saves in `to` unless empty.
Held run(const Ranks& ranks, Dtype dtype, Dtype states, const std::string& from, int first, int steps,
         const std::string& to) {
  std::mutex mutex;
  Held held;
  const LayoutCase c = case_of(ranks);
  const spec::ModelSpec model = tests::case_model(c);
  tests::on_thread_ranks(ranks.all(), [&](Communicator& communicator) {
    tests::StepRunner runner(model, dtype, at::kCPU, communicator, ranks.layout, tests::layout_settings(c),
                             c.seed, states, Dtype::f32, spec::Recompute::norms_swiglu, {}, ranks.tensor,
                             ranks.expert);
    if (!from.empty()) {
      checkpoint::load(from, runner.buffers(), runner.groups());
      runner.parameters().weights_changed();
    }
    Held mine;
    for (int step = first; step < first + steps; ++step) {
      const auto whole = tests::tiny_batch(model, 8, tests::case_tokens(c), c.documents, c.ignored,
                                           static_cast<std::uint64_t>(step));
      runner.set_step(step);
      mine.losses.push_back(
          runner
              .step(tests::dealt(whole, c, ranks.layout.ranks, runner.groups().batch().rank()),
                    static_cast<double>(whole.valid_tokens()), 3e-3)
              .cross_entropy);
    }
    runner.parameters().settle_weights();
    mine.odd = compare_replicas(runner.buffers(), runner.groups()).odd;
    if (!to.empty())
      checkpoint::save(to, runner.buffers(), {.step = first + steps, .tokens = 1, .config = ""}, 5,
                       runner.groups());
    std::size_t number = 0;
    for (const auto buffer : {&ParameterBuffers::master, &ParameterBuffers::moment1,
                              &ParameterBuffers::moment2, &ParameterBuffers::weights})
      mine.buffers[number++] = parameters_of(tests::whole_model(runner, buffer), runner.buffers().model);
    const std::scoped_lock lock(mutex);
    held = mine;
  });
  return held;
}

bool same_bits(const Held& a, const Held& b) {
  for (std::size_t i = 0; i < a.buffers.size(); ++i)
    if (!at::equal(a.buffers[i], b.buffers[i])) return false;
  return true;
}

TEST(ExpertRanksImpl, InitialWeightsAreTheSameBitsForEveryNumber) {
  for (const auto& [dtype, states] : {std::pair{Dtype::f64, Dtype::f64}, std::pair{Dtype::bf16, Dtype::f32},
                                      std::pair{Dtype::bf16, Dtype::bf16}}) {
    const Held alone = run(splits[0], dtype, states, "", 0, 0, "");
    for (const Ranks& ranks : splits)
      EXPECT_TRUE(same_bits(run(ranks, dtype, states, "", 0, 0, ""), alone)) << ranks.name();
  }
}

/// Experts stand in a checkpoint by their global number: what any number of expert ranks saved, any other
/// loads.
TEST(ExpertRanksImpl, SavedByAnyNumberLoadedByAnyOtherBitForBit) {
  for (const Dtype dtype : {Dtype::f64, Dtype::bf16}) {
    tests::Scratch scratch;
    const auto folder = [&](std::size_t i) { return (scratch.path() / std::to_string(i)).string(); };
    std::vector<Held> saved;
    for (std::size_t a = 0; a < splits.size(); ++a)
      saved.push_back(run(splits[a], dtype, Dtype::f32, "", 0, 2, folder(a)));
    for (std::size_t a = 0; a < splits.size(); ++a)
      for (std::size_t b = 0; b < splits.size(); ++b)
        EXPECT_TRUE(same_bits(
            saved[a], run(splits[b], dtype, Dtype::f32, folder(a) + "/checkpoints/step_00000002", 2, 0, "")))
            << "saved as " << splits[a].name() << ", loaded as " << splits[b].name();
  }
}

/// The same run twice is the same bits, in bf16 with states in bf16 too, and copies of experts agree.
TEST(ExpertRanksImpl, ARunRepeatsBitForBitAndCopiesAgree) {
  for (const Dtype states : {Dtype::f32, Dtype::bf16})
    for (const std::size_t i : {2u, 3u, 7u, 9u, 12u}) {
      const Held once = run(splits[i], Dtype::bf16, states, "", 0, 6, ""),
                 twice = run(splits[i], Dtype::bf16, states, "", 0, 6, "");
      EXPECT_TRUE(same_bits(once, twice)) << splits[i].name();
      EXPECT_EQ(once.odd, "") << splits[i].name();
      EXPECT_EQ(once.losses, twice.losses) << splits[i].name();
    }
}

/// Every entry's roundings of bf16 states are drawn by its place in the whole model: where gradients are the
/// same bits, so are the states, whoever holds them.
TEST(ExpertRanksImpl, RoundingsGoByTheGlobalNumber) {
  const LayoutCase c = case_of({});
  const spec::ModelSpec model = tests::case_model(c);
  const at::Tensor gradient = at::randn({spec::inventory(model).flat_size}, at::kFloat);
  const auto updated = [&](std::int64_t expert) {
    at::Tensor out = at::zeros_like(gradient, at::kBFloat16);
    for (std::int64_t rank = 0; rank < expert; ++rank) {
      ParameterBuffers buffers = allocate(
          model, Dtype::bf16, at::kCPU, Dtype::bf16,
          {.layout = spec::layout_of(DataParallel::replicate, expert), .expert_ranks = expert, .rank = rank});
      initialise(buffers, model, 3);
      for (ParameterBuffers* part : buffers.sets())
        for (std::size_t i = 0; i < part->placements.size(); ++i) {
          const spec::Parameter &own = part->inventory.parameters[i],
                                &whole = buffers.model.parameters[part->placements[i].number];
          part->gradients.narrow(0, own.offset, own.size).copy_(gradient.narrow(0, whole.offset, own.size));
        }
      const AdamWSettings settings{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .seed = 5};
      const UpdateNumbers numbers = update_numbers(buffers, settings, 1e-3, 1);
      update(buffers, settings, at::tensor(at::ArrayRef<double>(numbers.data(), numbers.size()), at::kDouble),
             at::ones({}, at::kDouble));
      for (ParameterBuffers* part : buffers.sets())
        for (std::size_t i = 0; i < part->placements.size(); ++i) {
          const spec::Parameter &own = part->inventory.parameters[i],
                                &whole = buffers.model.parameters[part->placements[i].number];
          out.narrow(0, whole.offset, own.size).copy_(part->moment1.narrow(0, own.offset, own.size));
        }
    }
    return out;
  };
  EXPECT_TRUE(at::equal(updated(1), updated(2)));
  EXPECT_TRUE(at::equal(updated(1), updated(4)));
}

/// A bit of an expert's weight that differs from its copy's is told of, and so is one of everything else.
TEST(ExpertRanksImpl, ACopyOfAnExpertThatDiffersIsNamed) {
  tests::on_thread_ranks(4, [&](Communicator& communicator) {
    const Ranks& ranks = splits[2];
    const LayoutCase c = case_of(ranks);
    tests::StepRunner runner(tests::case_model(c), Dtype::bf16, at::kCPU, communicator, ranks.layout,
                             tests::layout_settings(c), c.seed, Dtype::f32, Dtype::f32,
                             spec::Recompute::norms_swiglu, {}, 1, ranks.expert);
    EXPECT_EQ(compare_replicas(runner.buffers(), runner.groups()).odd, "");
    if (communicator.rank() == 3) runner.buffers().others.at(0).weights.view(at::kShort)[0].bitwise_xor_(1);
    EXPECT_EQ(compare_replicas(runner.buffers(), runner.groups()).odd, "rank 3");
  });
}

/// A step on one rank of an expert group, by the plan of a load and by the allocator.
struct StepMemory {
  LayoutCase c;
  spec::ModelSpec model;
  Dtype dtype = Dtype::f32;
  bool one_expert = false;  ///< routers are zero: every token's choices are the first experts
  std::vector<double> loads = {};

  spec::memory::Setting setting(double load) const {
    const spec::Layout layout = spec::layout_of(DataParallel::replicate, c.expert);
    return {.model = spec::tensor_model(model, c.tensor),
            .dtype = dtype,
            .linear = c.linear,
            .recompute = c.recompute,
            .micro = c.micro,
            .sequence_length = model.context,
            .micro_batches = c.accumulation,
            .auxiliary = {.probabilities = true, .logits = true},
            .layout = layout,
            .tensor_ranks = c.tensor,
            .expert_ranks = c.expert,
            .whole = model,
            .load = load};
  }
  std::int64_t planned(double load) const { return spec::memory::plan(setting(load)).peak.to_int64(); }

  std::int64_t measured(Communicator& communicator) {
    const auto batch = tests::tiny_batch(model, c.micro * c.accumulation, model.context,
                                         tests::Documents::whole, tests::Ignored::some, c.seed);
    run::StepSettings settings = tests::layout_settings();
    settings.balance = 0.3, settings.router_z = 0.05;
    const auto micro_batches = tests::micro_batches(batch, c.micro);
    tests::CountingAllocator::installed().begin();
    tests::StepRunner trainer(model, dtype, at::kCPU, communicator, setting(1).layout, settings, 1,
                              Dtype::f32, Dtype::f32, c.recompute, c.linear, c.tensor, c.expert);
    if (one_expert)
      for (const spec::Parameter& parameter : trainer.buffers().inventory.parameters)
        if (parameter.role == spec::Role::router)
          trainer.buffers().weights.narrow(0, parameter.offset, parameter.size).zero_();
    trainer.model().on_arrival([this](std::int64_t, double load) { loads.push_back(load); });
    trainer.step(micro_batches, static_cast<double>(batch.valid_tokens()), 1e-3);
    return tests::CountingAllocator::installed().peak();
  }

  /// Scalars of a step, routers' losses (tests/impl/params/plan_test.cpp), positions, and an exchange's
  /// counts.
  std::int64_t beside() const {
    return 512 + 4 * 8 * model.sparse_layers() * (3 + model.experts->count) +
           4 * c.micro * c.accumulation * model.context + 64 * model.experts->count;
  }
};

StepMemory drawn_step() {
  StepMemory step{.c = {.seed = *rc::gen::inRange<std::uint64_t>(0, 1000),
                        .micro = *rc::gen::inRange<std::int64_t>(1, 5),
                        .accumulation = *rc::gen::inRange<std::int64_t>(1, 3)},
                  .model = {}};
  LayoutCase& c = step.c;
  c.tensor = *rc::gen::inRange<std::int64_t>(1, 3), c.micro *= c.tensor;
  c.experts = true, c.expert = *rc::gen::inRange<std::int64_t>(2, 5);
  c.recompute = *rc::gen::elementOf(spec::all_recomputes);
  step.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  const bool fp8 = c.tensor == 1 && *rc::gen::arbitrary<bool>();
  if (fp8)
    c.linear = {.recipe = Recipe::fp8_tensor,
                .weights = *rc::gen::element(spec::QuantiseWeights::use, spec::QuantiseWeights::step),
                .experts = true};
  step.model = tests::case_model(c);
  step.model.context = fp8 ? 16 : *rc::gen::inRange<std::int64_t>(4, 24);
  if (c.tensor > 1) step.model.kv_heads = *rc::gen::inRange<std::int64_t>(1, 3), step.model.heads = 2;
  spec::Experts& experts = *step.model.experts;
  experts.active_groups = experts.groups, experts.active = experts.count;
  return step;
}

/// Where every token visits as many ranks as it can, a rank takes what the plan says: all of them, where it
/// visits all experts, or one for each choice, where a rank holds one expert. A rank alone gets what it
/// sends.
RC_GTEST_PROP(ExpertRanksImpl, StepsTakeTheMemoryOfThePlan, ()) {
  StepMemory step = drawn_step();
  if (*rc::gen::arbitrary<bool>()) {
    spec::Experts& experts = *step.model.experts;
    experts.count = step.c.expert, experts.groups = experts.active_groups = 1;
    experts.active = *rc::gen::inRange<std::int64_t>(1, step.c.expert);
  }
  tests::SoloCommunicator communicator(static_cast<int>(step.c.expert * step.c.tensor), 0);
  const std::int64_t predicted = step.planned(1), measured = step.measured(communicator);
  RC_LOG() << tests::describe(step.c, step.setting(1).layout) << ": predicted " << predicted << ", measured "
           << measured << "\n";
  RC_ASSERT(measured >= predicted);
  RC_ASSERT(measured <= predicted + step.beside());
}

/// Where every token of every rank goes to one expert, or to all of this rank's and one of each other rank:
/// what the plan says of that load, which is the largest that routing brings.
RC_GTEST_PROP(ExpertRanksImpl, UnevenLoadsTakeTheMemoryOfTheirPlan, ()) {
  StepMemory step = drawn_step();
  step.one_expert = true;
  const std::int64_t e = step.c.expert, here = *rc::gen::inRange<std::int64_t>(1, 4);
  spec::Experts& experts = *step.model.experts;
  experts.count = e * here, experts.groups = experts.active_groups = 1;
  experts.active = *rc::gen::arbitrary<bool>() ? 1 : (e - 1) * here + 1;
  tests::MirrorCommunicator communicator(static_cast<int>(e * step.c.tensor), 0);
  const double load =
      static_cast<double>(e * std::min(experts.active, here)) / static_cast<double>(experts.active);
  RC_ASSERT(spec::memory::most_load(step.setting(1)) == load);
  const std::int64_t predicted = step.planned(load), measured = step.measured(communicator);
  RC_LOG() << tests::describe(step.c, step.setting(1).layout) << ", load " << load << ": predicted "
           << predicted << ", measured " << measured << "\n";
  RC_ASSERT(!step.loads.empty());
  for (const double each : step.loads) RC_ASSERT(each == load);
  RC_ASSERT(measured >= predicted);
  RC_ASSERT(measured <= predicted + step.beside());
  // Of each layer apart it is the same, and with fewer rows less.
  spec::memory::Setting apart = step.setting(1);
  apart.layer_loads.assign(static_cast<std::size_t>(step.model.sparse_layers()), load);
  RC_ASSERT(spec::memory::plan(apart).peak == Count(predicted));
  RC_ASSERT(load == 1 || step.planned(1) <= predicted);
}

}  // namespace
}  // namespace assay::impl::expert_ranks_test
