// labels: unit property
#include "reference/ops/init.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/ops/init/init.hpp"

namespace assay::reference::init_test {
namespace {

spec::ModelSpec model_of(double std, std::int64_t layers) {
  spec::ModelSpec model;
  model.init_std = std;
  model.layers = layers;
  return model;
}

spec::Parameter parameter_of(spec::Role role, Shape shape) {
  spec::Parameter parameter{};
  parameter.role = role;
  parameter.shape = std::move(shape);
  return parameter;
}

TEST(InitReference, GivesTheSpecExample) {
  const auto norm = init::values(parameter_of(spec::Role::norm, {4}), 0, model_of(0.02, 2), 7);
  EXPECT_EQ(norm.shape(), (Shape{4}));
  EXPECT_TRUE((norm.flat() == 1).all());
  const auto down = init::values(parameter_of(spec::Role::down, {3, 5}), 3, model_of(0.02, 2), 7);
  const auto gate = init::values(parameter_of(spec::Role::gate, {3, 5}), 3, model_of(0.02, 2), 7);
  EXPECT_TRUE(((2 * down.flat() - gate.flat()).abs() <= 1e-17).all());
  EXPECT_GT(gate.flat().abs().minCoeff(), 0);
}

TEST(InitReference, EveryEntryIsDrawnByItself) {
  const auto gate = init::values(parameter_of(spec::Role::gate, {3, 5}), 3, model_of(0.02, 2), 7);
  for (Index i = 0; i < gate.size(); ++i)
    for (Index j = 0; j < i; ++j) EXPECT_NE(gate[i], gate[j]) << i << " and " << j;
}

TEST(InitReference, C1RejectsAShapeThatIsNotTheRoles) {
  EXPECT_THROW(init::values(parameter_of(spec::Role::gate, {4}), 0, model_of(0.02, 2), 7), SpecError);
}

TEST(InitReference, C2ToC4RejectSettingsOutsideTheirRange) {
  const auto gate = parameter_of(spec::Role::gate, {3, 5});
  EXPECT_THROW(init::values(gate, 0, model_of(0, 2), 7), SpecError);
  EXPECT_THROW(init::values(gate, 0, model_of(0.02, 0), 7), SpecError);
  EXPECT_THROW(init::values(gate, -1, model_of(0.02, 2), 7), SpecError);
}

RC_GTEST_PROP(InitReference, ARowDoesNotDependOnHowManyRowsThereAre, ()) {
  // What sharding by rows relies on: element numbers, not shapes, choose the values.
  const Index rows = *rc::gen::inRange(1, 6), more = *rc::gen::inRange(1, 6), width = *rc::gen::inRange(1, 6);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto few = init::values(parameter_of(spec::Role::up, {rows, width}), 5, model_of(0.02, 3), seed);
  const auto all =
      init::values(parameter_of(spec::Role::up, {rows + more, width}), 5, model_of(0.02, 3), seed);
  RC_ASSERT((few.flat() == all.flat().head(few.size())).all());
}

}  // namespace
}  // namespace assay::reference::init_test
