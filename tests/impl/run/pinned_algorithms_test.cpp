// labels: unit property
// What a run computes by is written into its folder, and a resume takes it from there: not from what was
// tuned in between, nor from what another rank's host has tuned.
#include "impl/run/start/pinned_algorithms.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "spec/error.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::pinned_algorithms_test {
namespace {

namespace fs = std::filesystem;
using cuda::AlgorithmTexts;
using cuda::GemmPins;

Algorithms machine(const AlgorithmTexts& tuned = {}) {
  return {.gpu = "NVIDIA H200", .libraries = "cuBLASLt 1, cuDNN 2", .attention = "cudnn", .gemms = tuned};
}

const auto all_run = [](const std::string&) { return true; };

class PinnedAlgorithmsImpl : public testing::Test {
 protected:
  std::string run() const { return scratch_.path().string(); }
  std::string checkpoint() const { return run() + "/checkpoints/step_00000002"; }

  /// Algorithms of `gemms` in a start of the run on `here`; each GEMM's first choice is "first". What
  /// was warned of goes to `doubt`.
  AlgorithmTexts start(const Algorithms& here, const std::vector<std::string>& gemms, bool resumes,
                       std::optional<std::string>* doubt = nullptr) {
    const auto alone = make_self_communicator();
    GemmPins pins{AlgorithmTexts()};
    PinnedAlgorithms pinned(here, pins, *alone);
    const auto text = pinned.begin(resumes ? checkpoint() : "");
    if (doubt)
      *doubt = text;
    else
      EXPECT_FALSE(text) << *text;
    for (const std::string& gemm : gemms) pins.of(gemm, "first", all_run);
    EXPECT_FALSE(pinned.keep(run()));
    return pins.used();
  }

  tests::Scratch scratch_;
};

TEST_F(PinnedAlgorithmsImpl, AResumeComputesByWhatTheRunWroteDownWhateverWasTunedInBetween) {
  const AlgorithmTexts then = start(machine({{"qkv", "tuned"}}), {"qkv", "down"}, false);
  EXPECT_EQ(then, (AlgorithmTexts{{"qkv", "tuned"}, {"down", "first"}}));
  const Algorithms tuned_since = machine({{"qkv", "other"}, {"down", "other"}, {"head", "other"}});
  EXPECT_EQ(start(tuned_since, {"qkv", "down"}, true), then);
  // What the run had not met yet is taken from this machine, and written down beside the rest.
  EXPECT_EQ(start(tuned_since, {"head"}, true), (AlgorithmTexts{{"head", "other"}}));
  EXPECT_EQ(start(machine(), {"qkv", "down", "head"}, true),
            (AlgorithmTexts{{"qkv", "tuned"}, {"down", "first"}, {"head", "other"}}));
}

TEST_F(PinnedAlgorithmsImpl, AnotherGpuOrLibraryIsToldOnceAndHasAlgorithmsOfItsOwn) {
  start(machine({{"qkv", "tuned"}}), {"qkv"}, false);
  for (const bool gpu : {true, false}) {
    Algorithms here = machine({{"qkv", "tuned there"}});
    (gpu ? here.gpu : here.libraries) = "another";
    std::optional<std::string> doubt;
    start(machine({{"qkv", "tuned"}}), {"qkv"}, false);
    EXPECT_EQ(start(here, {"qkv"}, true, &doubt), (AlgorithmTexts{{"qkv", "tuned there"}}));
    ASSERT_TRUE(doubt);
    for (const char* part : {"algorithms.json", "NVIDIA H200", "cuBLASLt 1, cuDNN 2", "another", "last bits"})
      EXPECT_NE(doubt->find(part), std::string::npos) << part << " in " << *doubt;
  }
}

TEST_F(PinnedAlgorithmsImpl, AnotherAttentionIsTold) {
  start(machine(), {"qkv"}, false);
  Algorithms here = machine();
  here.attention = "flash";
  std::optional<std::string> doubt;
  start(here, {"qkv"}, true, &doubt);
  EXPECT_NE(doubt.value_or("").find("attention=cudnn, and goes on on attention=flash"), std::string::npos)
      << doubt.value_or("nothing");
}

TEST_F(PinnedAlgorithmsImpl, ARunThatWroteNothingOrADamagedFileIsTold) {
  std::optional<std::string> doubt;
  start(machine(), {"qkv"}, true, &doubt);
  EXPECT_NE(doubt.value_or("").find("algorithms.json"), std::string::npos) << doubt.value_or("nothing");
  for (const char* text :
       {"", "{", "{}", "{\"gpu\": 1, \"libraries\": \"\", \"attention\": \"\", \"gemms\": {}}"}) {
    scratch_.write("algorithms.json", text);
    start(machine(), {"qkv"}, true, &doubt);
    EXPECT_NE(doubt.value_or("").find("last bits"), std::string::npos) << text;
  }
}

TEST_F(PinnedAlgorithmsImpl, AFolderThatCannotBeWrittenIsSaidAndTriedAgain) {
  const auto alone = make_self_communicator();
  GemmPins pins{AlgorithmTexts()};
  PinnedAlgorithms pinned(machine(), pins, *alone);
  pinned.begin("");
  pins.of("qkv", "first", all_run);
  const auto failed = pinned.keep(run() + "/not there");
  ASSERT_TRUE(failed);
  EXPECT_NE(failed->find("not there"), std::string::npos) << *failed;
  fs::create_directory(run() + "/not there");
  EXPECT_FALSE(pinned.keep(run() + "/not there"));
  EXPECT_TRUE(fs::exists(run() + "/not there/algorithms.json"));
}

/// Hosts have caches of their own: rank 0's counts for all. What other ranks alone have used is kept, too.
TEST_F(PinnedAlgorithmsImpl, EveryRankTakesRank0sAlgorithmsAndEveryRanksAreKept) {
  tests::on_thread_ranks(3, [&](Communicator& communicator) {
    const std::string rank = std::to_string(communicator.rank());
    GemmPins pins{AlgorithmTexts()};
    PinnedAlgorithms pinned(machine({{"qkv", "of host " + rank}}), pins, communicator);
    EXPECT_FALSE(pinned.begin(""));
    EXPECT_EQ(pins.of("qkv", "first", all_run), "of host 0");
    pins.of("stage " + rank, "first of " + rank, all_run);
    EXPECT_FALSE(pinned.keep(run()));
  });
  EXPECT_EQ(start(machine({{"stage 2", "other"}}), {"qkv", "stage 1", "stage 2"}, true),
            (AlgorithmTexts{{"qkv", "of host 0"}, {"stage 1", "first of 1"}, {"stage 2", "first of 2"}}));
}

RC_GTEST_PROP(PinnedAlgorithmsText, SurviveTheirFile, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127));
  Algorithms all{.gpu = *text, .libraries = *text, .attention = *text};
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n) all.gemms[*text] = *text;
  RC_ASSERT(algorithms_of(to_json(all), "here") == all);
}

}  // namespace
}  // namespace assay::impl::run::pinned_algorithms_test
