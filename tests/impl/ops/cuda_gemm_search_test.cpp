// labels: unit property
#include "impl/ops/gemm/cuda_gemm_search.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace assay::impl::cuda::cuda_gemm_search_test {
namespace {

/// Takes turns until there is a winner; time_of(candidate) is a call's. Returns the number of calls.
template <class Time>
std::size_t play(Tournament& tournament, const Time& time_of) {
  std::size_t calls = 0;
  for (; !tournament.winner(); ++calls) {
    const std::size_t candidate = tournament.next();
    tournament.add(candidate, time_of(candidate));
  }
  return calls;
}

RC_GTEST_PROP(CudaGemmSearch, TheFastestWinsInWhateverLoad, ()) {
  // Times that lie 2 % apart, in any order, while the clock falls by 10 % and every call is off by 0.3 %.
  const auto count = *rc::gen::inRange<std::size_t>(1, 13),
             fastest = *rc::gen::inRange<std::size_t>(0, count);
  Tournament tournament(count);
  float clock = 1;
  const std::size_t calls = play(tournament, [&](std::size_t candidate) {
    clock = std::min(1.1f, clock + 0.001f);
    const float distance = static_cast<float>((candidate + count - fastest) % count);
    return clock * (1 + 0.02f * distance) * (1 + 0.003f * static_cast<float>(*rc::gen::inRange(-1, 2)));
  });
  RC_ASSERT(tournament.winner() == fastest);
  RC_ASSERT(calls <= count * Tournament::last_look);
}

TEST(CudaGemmSearch, TheFirstChoiceStaysUnlessAnotherIsClearlyFaster) {
  for (const auto& [other, winner] : {std::pair{0.998f, 0u}, std::pair{0.99f, 1u}}) {
    Tournament tournament(2);
    play(tournament, [other = other](std::size_t candidate) { return candidate == 1 ? other : 1.0f; });
    EXPECT_EQ(tournament.winner(), winner) << other;
  }
}

TEST(CudaGemmSearch, ASlowCandidateLeavesAtTheFirstLook) {
  Tournament tournament(3);
  std::vector<std::size_t> calls(3);
  play(tournament, [&](std::size_t candidate) {
    ++calls[candidate];
    return candidate == 1 ? 1.5f : 1.0f;
  });
  EXPECT_EQ(calls,
            (std::vector<std::size_t>{Tournament::last_look, Tournament::first_look, Tournament::last_look}));
}

TEST(CudaGemmSearch, TimesThatComeLateAreTakenInAnyOrder) {
  // The host is far ahead: all calls are given before the first time is known.
  Tournament tournament(2);
  std::vector<std::size_t> given;
  for (int call = 0; call < 40; ++call) given.push_back(tournament.next());
  EXPECT_EQ(std::count(given.begin(), given.end(), 0u), 20);
  for (const std::size_t candidate : given) tournament.add(candidate, candidate == 0 ? 2.0f : 1.0f);
  EXPECT_EQ(tournament.winner(), 1u);
}

TEST(CudaGemmSearch, ACandidateThatCannotRunLeaves) {
  Tournament tournament(3);
  tournament.drop(0);
  for (int call = 0; call < 6; ++call) EXPECT_NE(tournament.next(), 0u);
  tournament.drop(2);
  EXPECT_EQ(tournament.winner(), 1u);
  tournament.drop(1);
  EXPECT_EQ(tournament.next(), 1u);
}

TEST(CudaGemmSearch, AnAlgorithmSurvivesItsText) {
  cublasLtMatmulAlgo_t algorithm;
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = 0x0123456789abcdefULL * (2 * i + 1);
  const auto again = from_text(to_text(algorithm));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(std::memcmp(&*again, &algorithm, sizeof algorithm), 0);
}

TEST(CudaGemmSearch, ADamagedLineIsNoAlgorithm) {
  const std::string text = to_text({});
  EXPECT_TRUE(from_text(text).has_value());
  EXPECT_FALSE(from_text("").has_value());
  EXPECT_FALSE(from_text(text.substr(1)).has_value());
  EXPECT_FALSE(from_text(text + "0").has_value());
  EXPECT_FALSE(from_text("x" + text.substr(1)).has_value());
}

}  // namespace
}  // namespace assay::impl::cuda::cuda_gemm_search_test
