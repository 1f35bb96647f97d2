// labels: parity property
// A checkpoint saved in any layout is loaded in any other: the same bits, and training goes on as if nothing
// had been.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/reshard.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::layout_checkpoint_test {
namespace {

using spec::DataParallel;
using tests::LayoutCase;

/// Of a model that 1, 2 and 4 tensor ranks split: with 2 each has a KV head, with 4 two share one.
const LayoutCase c{
    .seed = 11, .micro = 1, .accumulation = 1, .ignored = tests::Ignored::some, .tensor = 4, .vocab = 23};
/// Sequences of a step: the same for any number of ranks below.
constexpr std::int64_t sequences = 12;

struct Ranks {
  spec::Layout layout = {};
  std::int64_t tensor = 1;
  std::string name() const {
    return std::string(spec::to_string(layout.data)) + " of " + std::to_string(layout.ranks) + " x " +
           std::to_string(tensor);
  }
};
const std::vector<Ranks> layouts = {{},
                                    {spec::layout_of(DataParallel::replicate, 2)},
                                    {spec::layout_of(DataParallel::zero1, 3)},
                                    {spec::layout_of(DataParallel::shard, 4)},
                                    {spec::layout_of(DataParallel::hybrid, 6, 3)},
                                    {spec::Layout{}, 4},
                                    {spec::layout_of(DataParallel::zero1, 2), 2},
                                    {spec::layout_of(DataParallel::shard, 2), 4},
                                    {spec::layout_of(DataParallel::hybrid, 4, 2), 2}};

/// What a run holds, of parameters alone, and the losses of its steps.
struct Held {
  at::Tensor master, moment1, moment2, weights;
  std::vector<double> losses;
};

bool same_bits(const Held& a, const Held& b) {
  return at::equal(a.master, b.master) && at::equal(a.moment1, b.moment1) &&
         at::equal(a.moment2, b.moment2) && at::equal(a.weights, b.weights);
}

/// Trains `steps` steps from the checkpoint `from`, or from the start where it is empty, and saves in `to`
/// unless empty.
Held run(const Ranks& ranks, Dtype dtype, const std::string& from, int first, int steps,
         const std::string& to) {
  std::mutex mutex;
  Held held;
  const spec::Layout& layout = ranks.layout;
  const spec::ModelSpec model = tests::case_model(c);
  tests::on_thread_ranks(static_cast<int>(layout.ranks * ranks.tensor), [&](Communicator& communicator) {
    tests::StepRunner runner(model, dtype, at::kCPU, communicator, layout, tests::layout_settings(), c.seed,
                             Dtype::f32, Dtype::f32, spec::Recompute::norms_swiglu, {}, ranks.tensor);
    if (!from.empty()) {
      checkpoint::load(from, runner.buffers(), runner.groups());
      runner.parameters().weights_changed();
    }
    std::vector<double> losses;
    for (int step = first; step < first + steps; ++step) {
      const auto whole = tests::tiny_batch(model, sequences, tests::case_tokens(c), c.documents, c.ignored,
                                           static_cast<std::uint64_t>(step));
      LayoutCase cut = c;
      cut.accumulation = sequences / layout.ranks;
      runner.set_step(step);
      losses.push_back(runner
                           .step(tests::dealt(whole, cut, layout.ranks, runner.groups().batch().rank()),
                                 static_cast<double>(whole.valid_tokens()), 3e-3)
                           .cross_entropy);
    }
    runner.parameters().settle_weights();
    if (!to.empty())
      checkpoint::save(to, runner.buffers(), {.step = first + steps, .tokens = 1, .config = ""}, 5,
                       runner.groups());
    const auto parameters_of = [&](const at::Tensor& buffer) {
      const at::Tensor whole = tests::of_tensor_ranks(runner, tests::whole_of(runner, buffer));
      std::vector<at::Tensor> parts;
      for (const spec::Parameter& p : runner.buffers().model.parameters)
        parts.push_back(whole.narrow(0, p.offset, p.size));
      return at::cat(parts);
    };
    const ParameterBuffers& b = runner.buffers();
    const Held mine{parameters_of(b.master), parameters_of(b.moment1), parameters_of(b.moment2),
                    parameters_of(b.weights), losses};
    const std::scoped_lock lock(mutex);
    held = mine;
  });
  return held;
}

std::string checkpoint_in(const std::string& folder) {
  return (std::filesystem::path(folder) / "checkpoints" / "step_00000002").string();
}

TEST(LayoutCheckpointImpl, SavedInAnyLayoutLoadedInAnyOtherBitForBit) {
  for (Dtype dtype : {Dtype::f64, Dtype::bf16}) {
    tests::Scratch scratch;
    std::vector<Held> saved;
    for (std::size_t a = 0; a < layouts.size(); ++a)
      saved.push_back(run(layouts[a], dtype, "", 0, 2, (scratch.path() / std::to_string(a)).string()));
    for (std::size_t a = 0; a < layouts.size(); ++a)
      for (std::size_t b = 0; b < layouts.size(); ++b)
        EXPECT_TRUE(same_bits(
            saved[a],
            run(layouts[b], dtype, checkpoint_in((scratch.path() / std::to_string(a)).string()), 2, 0, "")))
            << "saved as " << layouts[a].name() << ", loaded as " << layouts[b].name();
  }
}

TEST(LayoutCheckpointImpl, AResumedRunInAnotherLayoutGoesOnAsTheUnchangedOne) {
  tests::Scratch scratch;
  const Held whole = run(Ranks{}, Dtype::f64, "", 0, 5, "");
  for (std::size_t a = 0; a < layouts.size(); ++a) {
    const std::size_t b = (a + 2) % layouts.size();
    const std::string folder = (scratch.path() / std::to_string(a)).string();
    run(layouts[a], Dtype::f64, "", 0, 2, folder);
    const Held rest = run(layouts[b], Dtype::f64, checkpoint_in(folder), 2, 3, "");
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(rest.losses[i], whole.losses[i + 2], 1e-11 * whole.losses[i + 2])
          << layouts[a].name() << " to " << layouts[b].name() << ", step " << i + 2;
    EXPECT_LT(((rest.master - whole.master).abs().max() / whole.master.abs().max()).item<double>(), 1e-11);
  }
}

TEST(LayoutCheckpointImpl, TheLayoutLeavesNoTraceInTheFiles) {
  // Initial weights are the same bits everywhere, so their checkpoints are the same files once resharded.
  tests::Scratch scratch;
  std::map<std::string, std::string> first;
  for (std::size_t a = 0; a < layouts.size(); ++a) {
    const auto folder = scratch.path() / std::to_string(a);
    run(layouts[a], Dtype::f32, "", 2, 0, folder.string());
    const auto one = scratch.path() / ("one-" + std::to_string(a));
    checkpoint::reshard({.checkpoint = checkpoint_in(folder.string()), .folder = one.string(), .files = 3});
    for (const char* name : {"rank-00000-of-00003.safetensors", "rank-00001-of-00003.safetensors",
                             "rank-00002-of-00003.safetensors", "manifest.json", "COMMITTED"}) {
      const std::string bytes = checkpoint::read_whole(one / name, spec::file_limits::manifest);
      const auto [it, is_new] = first.emplace(name, bytes);
      EXPECT_EQ(it->second == bytes, true) << name << " of " << layouts[a].name();
    }
  }
}

/// The biases of routers on rank 0 behind two steps, or behind loading them, and a step later.
std::vector<at::Tensor> biases(const spec::ModelSpec& model, const spec::Layout& layout, Dtype dtype,
                               Dtype states, const std::string& from, const std::string& to) {
  std::vector<at::Tensor> out;
  std::mutex mutex;
  impl::run::StepSettings settings = tests::layout_settings();
  settings.balance = 0.1, settings.bias_rate = 1e-3;
  tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
    tests::StepRunner runner(model, dtype, at::kCPU, communicator, layout, settings, 5, states);
    const auto step = [&](int number) {
      const auto whole = tests::tiny_batch(model, sequences, 5, tests::Documents::whole, tests::Ignored::some,
                                           static_cast<std::uint64_t>(number));
      runner.set_step(number);
      runner.step(tests::dealt(whole, {.micro = 1, .accumulation = sequences / layout.ranks}, layout.ranks,
                               communicator.rank()),
                  static_cast<double>(whole.valid_tokens()), 3e-3);
    };
    if (from.empty()) {
      step(0), step(1);
    } else {
      checkpoint::load(from, runner.buffers(), runner.groups());
      runner.parameters().weights_changed();
    }
    runner.parameters().settle_weights();
    const at::Tensor before = runner.buffers().router_biases.clone();
    if (!to.empty())
      checkpoint::save(to, runner.buffers(), {.step = 2, .tokens = 1, .config = ""}, 5, runner.groups());
    step(2);
    const std::scoped_lock lock(mutex);
    if (communicator.rank() == 0) out = {before, runner.buffers().router_biases.clone()};
  });
  return out;
}

TEST(LayoutCheckpointImpl, RouterBiasesGoOnInAnyLayoutBitForBit) {
  spec::ModelSpec model = tests::routed_model(0);
  for (std::uint64_t seed = 1; !model.experts->router_bias || model.experts->count < 3; ++seed)
    model = tests::routed_model(seed);
  const spec::Layout kinds[] = {spec::Layout{}, spec::layout_of(DataParallel::zero1, 2),
                                spec::layout_of(DataParallel::shard, 3),
                                spec::layout_of(DataParallel::hybrid, 4, 2)};
  for (const auto& [dtype, states] : {std::pair{Dtype::f64, Dtype::f32}, {Dtype::bf16, Dtype::bf16}})
    for (const spec::Layout& saver : kinds) {
      tests::Scratch scratch;
      const auto saved = biases(model, saver, dtype, states, "", scratch.path().string());
      EXPECT_GT(saved[0].abs().max().item<double>(), 0);
      EXPECT_FALSE(at::equal(saved[0], saved[1]));
      for (const spec::Layout& loader : kinds) {
        const auto loaded = biases(model, loader, dtype, states, checkpoint_in(scratch.path().string()), "");
        EXPECT_TRUE(at::equal(loaded[0], saved[0]));
        // In fp64 the same tokens choose the same experts in every layout.
        if (dtype == Dtype::f64 || &loader == &saver) {
          EXPECT_TRUE(at::equal(loaded[1], saved[1])) << saver.ranks << " " << loader.ranks;
        }
      }
    }
}

}  // namespace
}  // namespace assay::impl::layout_checkpoint_test
