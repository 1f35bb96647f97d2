// labels: unit
#include "reference/model/parameters.hpp"

#include <gtest/gtest.h>

#include "spec/model/inventory.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::parameters_test {
namespace {

TEST(ParametersReference, InitialValuesHaveTheNamesAndShapesOfTheInventory) {
  for (const auto& model : tests::corner_models()) {
    SCOPED_TRACE(tests::describe(model));
    const auto parameters = initial_parameters(model, 3), nothing = zeros(model);
    const auto inventory = spec::inventory(model);
    EXPECT_EQ(parameters.size(), inventory.parameters.size());
    EXPECT_EQ(nothing.size(), inventory.parameters.size());
    for (const auto& parameter : inventory.parameters) {
      EXPECT_EQ(parameters.at(parameter.name).shape(), parameter.shape) << parameter.name;
      EXPECT_EQ(nothing.at(parameter.name).shape(), parameter.shape) << parameter.name;
      EXPECT_EQ(nothing.at(parameter.name).flat().abs().sum(), 0) << parameter.name;
    }
  }
}

TEST(ParametersReference, GainsStartAtOneAndNoTwoMatricesAreAlike) {
  const auto model = tests::corner_models().front();
  const auto parameters = initial_parameters(model, 3);
  std::map<double, std::string> first_entries;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.rank() == 1) {
      EXPECT_TRUE((tensor.flat() == 1).all()) << name;
    } else {
      EXPECT_LE(tensor.flat().abs().maxCoeff(), 10 * model.init_std) << name;
      const auto [entry, first] = first_entries.emplace(tensor[0], name);
      EXPECT_TRUE(first) << name << " begins as " << entry->second;
    }
  }
}

TEST(ParametersReference, InitialValuesAreAFunctionOfTheSeed) {
  const auto model = tests::corner_models().front();
  const auto first = tests::joined(initial_parameters(model, 3));
  EXPECT_EQ(first.data, tests::joined(initial_parameters(model, 3)).data);
  EXPECT_NE(first.data, tests::joined(initial_parameters(model, 4)).data);
}

TEST(ParametersReference, TheFirstGradientIsStoredAndLaterOnesAreAdded) {
  Parameters<double> gradients;
  add_gradient(gradients, "a", Tensor<double>({2}, {1, 2}));
  add_gradient(gradients, "b", Tensor<double>({1}, {5}));
  add_gradient(gradients, "a", Tensor<double>({2}, {10, 20}));
  EXPECT_EQ(tests::joined(gradients).data, (std::vector<double>{11, 22, 5}));
}

}  // namespace
}  // namespace assay::reference::parameters_test
