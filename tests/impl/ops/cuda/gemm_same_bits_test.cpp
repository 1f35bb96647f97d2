// labels: gpu unit
// While `deterministic()`, GEMMs take the fastest of the algorithms that give the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/cuda_gemm.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "impl/ops/gemm/gemm_pins.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::cuda_gemm_same_bits_test {
namespace {

class GemmSameBitsCuda : public testing::Test {
 protected:
  GemmSameBitsCuda() {
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);  // read when the first GEMM asks for its choice
    set_deterministic(true);
  }
  ~GemmSameBitsCuda() override { set_deterministic(false); }

  static at::Tensor normal(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    at::Generator generator = at::Generator(at::detail::getCUDAHooks().getNewGenerator());
    generator.set_current_seed(seed);
    return at::randn({rows, columns}, generator, at::TensorOptions(at::kCUDA)).to(at::kBFloat16);
  }

  /// Calls for as long as a search may take; whether some were searching, and the last ones were not.
  template <class Call>
  static bool searched(const Call& call) {
    using Clock = std::chrono::steady_clock;
    const std::int64_t before = cuda::searching_calls();
    const Clock::time_point begin = Clock::now();
    std::int64_t last = before, settled = 0;
    while (settled < 5 && Clock::now() - begin < std::chrono::seconds(20)) {
      call();
      settled = cuda::searching_calls() == last ? settled + 1 : 0;
      last = cuda::searching_calls();
    }
    EXPECT_EQ(settled, 5) << "the search has not ended";
    return last != before;
  }

  static void print_searches() {
    for (const std::string& line : cuda::new_searches()) std::cout << line << std::endl;
  }

  tests::Scratch cache_;
};

TEST_F(GemmSameBitsCuda, EveryCallOfASearchHasTheBitsOfTheFirst) {
  ASSAY_NEEDS_GPU();
  constexpr std::int64_t N = 16384, in = 2304, out = 6144;
  const at::Tensor x = normal(N, in, 1), weight = normal(out, in, 2), dy = normal(N, out, 3);
  const at::Tensor y = at::empty({N, out}, x.options()), dx = at::empty({N, in}, x.options()),
                   dweight = at::empty({out, in}, x.options().dtype(at::kFloat));
  const auto all = [&] {
    cuda::multiply({.left = {x}, .right = {weight, true}}, y, {});
    cuda::multiply({.left = {dy}, .right = {weight}}, dx, {});
    cuda::multiply({.left = {dy, true}, .right = {x}}, dweight, dweight, 0);  // a sum of two micro-batches
    cuda::multiply({.left = {dy, true}, .right = {x}}, dweight, dweight);
  };
  all();
  const at::Tensor first_y = y.clone(), first_dx = dx.clone(), first_dweight = dweight.clone();
  std::int64_t calls = 0, others = 0;
  const bool timed = searched([&] {
    all();
    others += !at::equal(y, first_y) || !at::equal(dx, first_dx) || !at::equal(dweight, first_dweight);
    ++calls;
  });
  print_searches();
  EXPECT_EQ(others, 0) << "of " << calls << " rounds";
  std::cout << calls << " rounds, " << (timed ? "timed" : "no two candidates of the same bits") << std::endl;

  // What the search found is what a resume is given; with it nothing is compared or timed.
  const cuda::AlgorithmTexts used = cuda::gemm_pins().used();
  EXPECT_GE(used.size(), 3u);
  const std::int64_t before = cuda::searching_calls();
  cuda::gemm_pins().give(used);
  all();
  EXPECT_EQ(cuda::searching_calls(), before);
  EXPECT_EQ(cuda::gemm_pins().used(), used);
  EXPECT_TRUE(at::equal(y, first_y) && at::equal(dx, first_dx) && at::equal(dweight, first_dweight));
  cuda::gemm_pins().give({});
}

TEST_F(GemmSameBitsCuda, ACallThatShowsNothingBeginsNoSearch) {
  ASSAY_NEEDS_GPU();
  constexpr std::int64_t N = 16384, in = 1536, out = 4096;
  const at::Tensor x = normal(N, in, 1), zeros = at::zeros({out, in}, x.options()), dy = normal(N, out, 2);
  const at::Tensor y = at::empty({N, out}, x.options()),
                   dweight = at::zeros({out, in}, x.options().dtype(at::kFloat));
  const std::int64_t before = cuda::searching_calls();
  for (int call = 0; call < 3; ++call) {
    cuda::multiply({.left = {x}, .right = {zeros, true}}, y, {});  // every order gives zero
    cuda::multiply({.left = {dy, true}, .right = {x}}, dweight, dweight);
  }
  EXPECT_EQ(cuda::searching_calls(), before);
  EXPECT_EQ(at::count_nonzero(y).item<std::int64_t>(), 0);
  // Three sums in place are those of one call times three, a rounding of each: none was computed twice.
  const at::Tensor once = at::zeros_like(dweight);
  cuda::multiply({.left = {dy, true}, .right = {x}}, once, once);
  const at::Tensor bound = gamma(2, unit_roundoff(Dtype::f32)) * 3 * once.abs().to(at::kDouble);
  EXPECT_TRUE(((dweight - 3 * once).abs().to(at::kDouble) <= bound).all().item<bool>());
}

}  // namespace
}  // namespace assay::impl::cuda_gemm_same_bits_test
