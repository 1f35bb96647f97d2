// labels: parity property
#include "impl/ops/init/init.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/init.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::init_test {
namespace {

using reference::Index;

spec::Parameter parameter(spec::Role role, std::vector<std::int64_t> shape) {
  Index size = 1;
  for (Index extent : shape) size *= extent;
  return {.name = "p", .shape = std::move(shape), .role = role, .block = 1, .offset = 0, .size = size};
}

spec::ModelSpec model() {
  spec::ModelSpec model;
  model.layers = 3;
  model.init_std = 0.02;
  return model;
}

RC_GTEST_PROP(InitImpl, HasTheBitsOfTheReference, ()) {
  const auto role = *rc::gen::element(spec::Role::embedding, spec::Role::norm, spec::Role::query,
                                      spec::Role::down, spec::Role::attention_output, spec::Role::head);
  std::vector<std::int64_t> shape{*rc::gen::inRange<Index>(1, 20)};
  if (role != spec::Role::norm) shape.push_back(*rc::gen::inRange<Index>(1, 20));
  const auto drawn = parameter(role, shape);
  const Index index = *rc::gen::inRange<Index>(0, 100);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto expected = tests::rounded(reference::init::values(drawn, index, model(), seed), at::kDouble);
  for (auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor values = at::zeros({drawn.size}, type);
    init::fill(values, drawn, index, model(), seed);
    RC_ASSERT(tests::same_bits(values, expected.flatten().to(type)));
  }
}

TEST(InitImpl, SameBitsOnAnyNumberOfThreads) {
  EXPECT_TRUE(tests::repeatable([] {
    at::Tensor values = at::empty({20000});
    init::fill(values, parameter(spec::Role::gate, {100, 200}), 4, model(), 7);
    return std::vector{values};
  }));
}

TEST(InitImpl, ConstraintsAreChecked) {
  const auto fill = [](Index entries, const spec::Parameter& into, Index index, const spec::ModelSpec& of) {
    return tests::refusal([&] { init::fill(at::empty({entries}), into, index, of, 1); });
  };
  const auto matrix = parameter(spec::Role::up, {2, 3});
  auto flat = model(), still = model();
  flat.layers = 0;
  still.init_std = 0;
  EXPECT_EQ(fill(6, matrix, 0, model()), "accepted");
  EXPECT_EQ(fill(6, parameter(spec::Role::norm, {2, 3}), 0, model()), "init_c1");
  EXPECT_EQ(fill(6, matrix, 0, still), "init_c2");
  EXPECT_EQ(fill(6, matrix, 0, flat), "init_c3");
  EXPECT_EQ(fill(6, matrix, -1, model()), "init_c4");
  EXPECT_EQ(fill(5, matrix, 0, model()), "init_c5");
}

}  // namespace
}  // namespace assay::impl::init_test
