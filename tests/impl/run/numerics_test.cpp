// labels: unit property
// What is settled of attention and of repeating bit for bit, for libraries that refuse and GPUs that are
// full; and that the plan of memory is of what was settled.
#include "impl/run/start/numerics.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "impl/machine/host_name.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/memory/attention.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::run::numerics_test {
namespace {

using spec::AttentionBackend;
using Backend = AttentionBackend;
using spec::Determinism;

const at::Device gpu(at::kCUDA, 0);

/// A GPU of 80 GB on which the libraries refuse what `refuses` says.
struct Gpu {
  std::int64_t memory = 80'000'000'000, free = 79'000'000'000;
  std::function<std::string(Backend, bool fixed_order)> refuses = [](Backend, bool) { return ""; };
  std::vector<std::pair<Backend, bool>> asked = {};

  Numerics settle(const spec::RunConfig& config) {
    const spec::ModelSpec model = spec::find_model(config.model);
    const spec::Batch batch = spec::batch_of(config.sequences, config.micro, 1);
    return run::settle(
        config,
        spec::memory::attention_case(
            spec::memory::setting_of(config, model, batch, spec::memory::Machine::cuda)),
        {.memory = memory,
         .free = free,
         .peak = [&](const spec::RunConfig& each) { return memory_plan(each, model, batch, gpu).peak; },
         .refusal =
             [&](Backend backend, bool fixed_order) {
               asked.emplace_back(backend, fixed_order);
               return refuses(backend, fixed_order);
             }});
  }
};

spec::RunConfig config_of(std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"model.name=llama-1.36b", "batch.sequences=8", "batch.micro=8",
                                  "batch.sequence_length=2048", "compute.dtype=bf16"};
  all.insert(all.end(), more.begin(), more.end());
  return spec::load("", all);
}

Count peak(const spec::RunConfig& config) {
  return memory_plan(config, spec::find_model(config.model),
                     spec::batch_of(config.sequences, config.micro, 1), gpu)
      .peak;
}

AttentionBackend planned(const spec::RunConfig& config) {
  return spec::memory::attention_backend(memory_plan(config, spec::find_model(config.model),
                                                     spec::batch_of(config.sequences, config.micro, 1), gpu)
                                             .setting);
}

TEST(NumericsImpl, ByDefaultARunHasAFixedOrderOnTheBackendThatTakesIt) {
  Gpu h100;
  const Numerics settled = h100.settle(config_of());
  EXPECT_EQ(settled.config.attention, AttentionBackend::cudnn);
  EXPECT_EQ(settled.config.deterministic, Determinism::on);
  EXPECT_TRUE(settled.notes.empty());
  EXPECT_EQ(h100.asked, (std::vector{std::pair{Backend::cudnn, true}})) << "one plan is prepared, not two";
  EXPECT_GT(peak(settled.config), peak(config_of())) << "the gradient of all scores is planned";
}

/// A cuDNN that takes forward alone: neither pass is its, and what is planned is what runs.
TEST(NumericsImpl, ABackwardThatCudnnRefusesIsPlannedAsTheBackendThatRuns) {
  Gpu here;
  here.refuses = [](Backend backend, bool) {
    return backend == Backend::cudnn ? "backward: no plan takes this shape" : "";
  };
  const Numerics flash = here.settle(config_of());
  EXPECT_EQ(flash.config.attention, AttentionBackend::flash);
  EXPECT_EQ(planned(flash.config), AttentionBackend::flash);
  ASSERT_EQ(flash.notes.size(), 1u);
  EXPECT_EQ(flash.notes[0].code, "attention");
  EXPECT_NE(flash.notes[0].text.find("flash; cudnn refused: backward: no plan"), std::string::npos)
      << flash.notes[0].text;
  here.refuses = [](Backend backend, bool) { return backend == Backend::math ? "" : "no"; };
  const Numerics math = here.settle(config_of());
  EXPECT_EQ(math.config.attention, AttentionBackend::math);
  EXPECT_EQ(planned(math.config), AttentionBackend::math);
  EXPECT_EQ(math.config.deterministic, Determinism::on);
  EXPECT_GT(peak(math.config), peak(flash.config)) << "scores of all pairs, in fp32";
}

TEST(NumericsImpl, WhereAFixedOrderHasNoRoomItIsOffAndSaid) {
  const spec::RunConfig asked = config_of();
  spec::RunConfig fixed = asked, any = asked;
  fixed.deterministic = Determinism::on, any.deterministic = Determinism::off;
  Gpu here;
  here.free = peak(fixed).to_int64();  // not the 2 % that a step may take beyond its plan
  ASSERT_LT(peak(any), Count(here.free));
  const Numerics settled = here.settle(asked);
  EXPECT_EQ(settled.config.attention, AttentionBackend::cudnn);
  EXPECT_EQ(settled.config.deterministic, Determinism::off);
  EXPECT_EQ(here.asked, (std::vector{std::pair{Backend::cudnn, false}}));
  ASSERT_EQ(settled.notes.size(), 1u);
  EXPECT_EQ(settled.notes[0].code, "deterministic");
  EXPECT_NE(settled.notes[0].text.find("batch.micro"), std::string::npos) << settled.notes[0].text;
  here.free = static_cast<std::int64_t>(peak(fixed).to_double() * 1.021);
  EXPECT_EQ(here.settle(asked).config.deterministic, Determinism::on);
  // Asked for by name it is not given up: the run is refused for its memory, or not.
  here.free = 0;
  EXPECT_EQ(here.settle(fixed).config.deterministic, Determinism::on);
  EXPECT_EQ(here.settle(any).config.deterministic, Determinism::off);
}

TEST(NumericsImpl, AFixedOrderThatCostsNoMemoryNeedsNoRoom) {
  Gpu here;
  here.free = 0;
  EXPECT_EQ(here.settle(config_of({"compute.attention=math"})).config.deterministic, Determinism::on);
}

/// Speed comes first where nobody asked for the bits, and bits where somebody did.
TEST(NumericsImpl, ABackendWithoutAFixedOrderKeepsItsPlaceUnlessOneWasAskedFor) {
  Gpu here;
  here.refuses = [](Backend backend, bool fixed_order) {
    return backend == Backend::cudnn && fixed_order ? "an engine of its own" : "";
  };
  const Numerics automatic = here.settle(config_of());
  EXPECT_EQ(automatic.config.attention, AttentionBackend::cudnn);
  EXPECT_EQ(automatic.config.deterministic, Determinism::off);
  ASSERT_EQ(automatic.notes.size(), 1u);
  EXPECT_NE(automatic.notes[0].text.find("cudnn refuses attention in a fixed order (an engine of its own)"),
            std::string::npos)
      << automatic.notes[0].text;
  const Numerics on = here.settle(config_of({"compute.deterministic=on"}));
  EXPECT_EQ(on.config.attention, AttentionBackend::flash);
  EXPECT_EQ(on.config.deterministic, Determinism::on);
  EXPECT_THROW(here.settle(config_of({"compute.deterministic=on", "compute.attention=cudnn"})), UserError);
}

/// Its refusal names what is too large (memory_limits.hpp); to prepare what cannot run would only run out.
TEST(NumericsImpl, ARunBeyondTheGpusMemoryIsNotTried) {
  Gpu small;
  small.memory = small.free = 1'000'000'000;
  EXPECT_EQ(small.settle(config_of()).config.attention, AttentionBackend::cudnn);
  EXPECT_TRUE(small.asked.empty());
}

/// The plan's own rule (spec/memory/attention.hpp) must come to the backend that was settled.
RC_GTEST_PROP(NumericsImpl, ThePlanIsOfTheBackendThatWasSettled, ()) {
  spec::RunConfig config = config_of();
  config.model = *rc::gen::element("llama-1.36b", "qwen3-1.8b");
  config.dtype = *rc::gen::element(Dtype::bf16, Dtype::f32, Dtype::f64);
  config.sequence_length = *rc::gen::element<std::int64_t>(1, 128, 2048);
  config.sequences = config.micro = 1;
  if (*rc::gen::arbitrary<bool>()) config.end_of_document = 0;
  config.deterministic = *rc::gen::element(Determinism::automatic, Determinism::on, Determinism::off);
  Gpu here;
  std::map<std::pair<Backend, bool>, bool> refused;
  for (const Backend backend : {Backend::cudnn, Backend::flash})
    for (const bool fixed_order : {false, true})
      refused[{backend, fixed_order}] = *rc::gen::arbitrary<bool>();
  here.refuses = [&](Backend backend, bool fixed_order) {
    return backend != Backend::math && refused[{backend, fixed_order}] ? "no" : "";
  };
  const Numerics settled = here.settle(config);
  const AttentionBackend kernel = settled.config.attention;
  RC_ASSERT(planned(settled.config) == kernel);
  RC_ASSERT(settled.config.deterministic != Determinism::automatic);
  RC_ASSERT(config.deterministic == Determinism::automatic ||
            config.deterministic == settled.config.deterministic);
  if (kernel != Backend::math) {
    const bool fixed_order = settled.config.deterministic == Determinism::on;
    RC_ASSERT(!refused[std::pair(kernel, fixed_order)]);
    RC_ASSERT(here.asked.back().second == fixed_order);
  }
}

/// A CPU's sums are in one order anyway, and its attention is one code.
TEST(NumericsImpl, OnACpuEveryRankRepeatsUnlessItIsToldNotTo) {
  tests::on_thread_ranks(2, [](Communicator& communicator) {
    const auto settled = [&](const char* setting) {
      const spec::RunConfig config = config_of({setting});
      return settle_numerics(config, spec::find_model(config.model), spec::batch_of(8, 4, 2), at::kCPU,
                             spec::layout_of(spec::DataParallel::replicate, 2), communicator)
          .config;
    };
    EXPECT_EQ(settled("compute.deterministic=auto").deterministic, Determinism::on);
    EXPECT_EQ(settled("compute.deterministic=off").deterministic, Determinism::off);
    EXPECT_EQ(settled("compute.attention=auto").attention, AttentionBackend::automatic);
  });
}

/// A rank whose library refuses, or whose GPU is another one, must not train beside the others.
TEST(NumericsImpl, RanksAgreeOrAllSayWhoDiffers) {
  const auto agreed = [](const std::vector<std::string>& ranks) -> std::string {
    std::vector<std::string> texts(ranks.size());
    tests::on_thread_ranks(static_cast<int>(ranks.size()), [&](Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      try {
        agree_on_numerics(
            [&]() -> Numerics {
              if (ranks[rank] == "refused") throw UserError(ExitCode::usage, "cannot compute");
              return {config_of({"compute.deterministic=on", "compute.attention=" + ranks[rank]}), {}};
            },
            communicator);
        texts[rank] = "agreed";
      } catch (const AgreedError& error) {
        texts[rank] = error.what();
      }
    });
    EXPECT_EQ(std::count(texts.begin(), texts.end(), texts[0]), static_cast<std::ptrdiff_t>(texts.size()));
    return texts[0];
  };
  EXPECT_EQ(agreed({"cudnn", "cudnn", "cudnn"}), "agreed");
  EXPECT_EQ(agreed({"cudnn", "cudnn", "refused"}), "rank 2 on host " + host_name() + ": cannot compute");
  const std::string differ = agreed({"cudnn", "flash"});
  for (const auto& [rank, backend] : {std::pair("rank 0 comes to", "cudnn"), std::pair("rank 1 to", "flash")})
    EXPECT_NE(differ.find(std::string(rank) + " compute.linear_weights=\"auto\" compute.attention=\"" +
                          backend + "\" compute.deterministic=\"on\""),
              std::string::npos)
        << differ;
}

}  // namespace
}  // namespace assay::impl::run::numerics_test
