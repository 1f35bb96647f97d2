// labels: unit
#include "impl/ops/cuda_gemm_search.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace assay::impl::cuda {
namespace {

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
}  // namespace assay::impl::cuda
