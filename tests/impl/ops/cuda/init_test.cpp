// labels: gpu parity property
#include "impl/ops/init/init.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/gpu.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::cuda_init_test {
namespace {

spec::ModelSpec model() {
  spec::ModelSpec model;
  model.layers = 3;
  model.init_std = 0.02;
  return model;
}

at::Tensor filled(spec::Role role, std::vector<std::int64_t> shape, std::int64_t index, std::uint64_t seed,
                  at::ScalarType type, at::Device device) {
  std::int64_t size = 1;
  for (std::int64_t extent : shape) size *= extent;
  const spec::Parameter parameter{
      .name = "p", .shape = std::move(shape), .role = role, .block = 1, .offset = 0, .size = size};
  const at::Tensor values = at::full({size}, -77, at::TensorOptions(device).dtype(type));
  init::fill(values, parameter, index, model(), seed);
  return values;
}

TEST(InitCuda, HasTheBitsOfTheCpu) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(rc::check(+[] {
    const auto role = *rc::gen::element(spec::Role::embedding, spec::Role::norm, spec::Role::down);
    std::vector<std::int64_t> shape{*rc::gen::inRange<std::int64_t>(1, 300)};
    if (role != spec::Role::norm) shape.push_back(*rc::gen::inRange<std::int64_t>(1, 300));
    const auto index = *rc::gen::inRange<std::int64_t>(0, 1000);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    for (auto type : {at::kDouble, at::kFloat, at::kBFloat16})
      RC_ASSERT(tests::same_bits(filled(role, shape, index, seed, type, at::kCUDA),
                                 filled(role, shape, index, seed, type, at::kCPU)));
  }));
}

/// Enough numbers that rare arguments occur: small radii, cosines beside their zeros.
TEST(InitCuda, HasTheBitsOfTheCpuInTwoMillionNumbers) {
  ASSAY_NEEDS_GPU();
  EXPECT_TRUE(tests::same_bits(filled(spec::Role::gate, {2000, 1000}, 5, 9, at::kDouble, at::kCUDA),
                               filled(spec::Role::gate, {2000, 1000}, 5, 9, at::kDouble, at::kCPU)));
}

}  // namespace
}  // namespace assay::impl::cuda_init_test
