// labels: unit property
#include "spec/claims/expression.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace assay::spec::claims::expression_test {
namespace {

Names example_names() {
  Names names;
  names.functions["length"] = [](const std::vector<Argument>& arguments) {
    return exact_interval(static_cast<double>(std::get<std::string>(arguments.at(0)).size()));
  };
  names.functions["largest"] = [](const std::vector<Argument>& arguments) {
    Interval best = std::get<Interval>(arguments.at(0));
    for (const Argument& argument : arguments)
      best = std::get<Interval>(argument).high > best.high ? std::get<Interval>(argument) : best;
    return best;
  };
  names.value = [](const std::string& name) {
    if (name == "half") return Interval{0.4, 0.6};
    throw SpecError("example", "no value " + name);
  };
  return names;
}

double value(std::string_view expression) { return evaluate(expression, example_names()).middle(); }

TEST(ExpressionSpec, FollowsTheUsualOrder) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("12 - 2 - 3"), 7);
  EXPECT_EQ(value("12 / 2 / 3"), 2);
  EXPECT_EQ(value("-2 * -(3 - 4)"), -2);
  EXPECT_EQ(value("6_291_456"), 6291456);
  EXPECT_EQ(value("1.5e-3 * 2k"), 3);
  EXPECT_EQ(value("82B / 2T"), 0.041);
  EXPECT_EQ(value("length('B200, sparse') + largest(1, 5, 3)"), 17);
}

TEST(ExpressionSpec, RoundedInputsGiveAnInterval) {
  const Interval product = evaluate("10 * half - half", example_names());
  EXPECT_DOUBLE_EQ(product.low, 3.4);
  EXPECT_DOUBLE_EQ(product.high, 5.6);
}

TEST(ExpressionSpec, C1SyntaxIsShownAtItsPlace) {
  for (const char* text : {"", "1 +", "1 2", "(1", "1)", "* 2", "1 + )", "1..2", "2x", "2P", "2kk",
                           "length('a", "largest(1,", "1e", "'a'", "$"}) {
    try {
      evaluate(text, example_names());
      ADD_FAILURE() << text;
    } catch (const SpecError& error) {
      EXPECT_EQ(error.label(), "expression_c1") << text;
    }
  }
  EXPECT_THROW(evaluate(std::string(1000, '(') + "1" + std::string(1000, ')'), example_names()), SpecError);
}

TEST(ExpressionSpec, C2UnknownFunctionsListTheKnownOnes) {
  try {
    evaluate("lenght('a')", example_names());
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_EQ(error.label(), "expression_c2");
    EXPECT_NE(std::string(error.what()).find("largest, length"), std::string::npos) << error.what();
  }
  EXPECT_THROW(evaluate("quarter", example_names()), SpecError);
}

TEST(ExpressionSpec, IntervalC1DivisionByWhatMayBeZero) {
  EXPECT_THROW(evaluate("1 / (half - half)", example_names()), SpecError);  // interval_c1
  EXPECT_THROW(evaluate("1 / 0", example_names()), SpecError);
}

RC_GTEST_PROP(ExpressionSpec, IntervalsHoldWhatTheirNumbersGive, ()) {
  const auto draw = [] { return *rc::gen::inRange(1, 1000) / 8.0; };
  const double a = draw(), b = draw(), width = draw() / 1e4;
  Names names;
  names.value = [&](const std::string& name) {
    const double centre = name == "a" ? a : b;
    return Interval{centre - width, centre + width};
  };
  RC_PRE(b > 2 * width);
  const double fraction = *rc::gen::inRange(-100, 101) / 100.0, x = a + fraction * width,
               y = b - fraction * width;
  const auto near = [](Interval interval, double number) {
    const double spare = 1e-9 * (1 + std::abs(number));
    return interval.low - spare <= number && number <= interval.high + spare;
  };
  RC_ASSERT(near(evaluate("a * b - a / b", names), x * y - x / y));
  RC_ASSERT(near(evaluate("(a + b) * (a - b)", names), (x + y) * (x - y)));
}

}  // namespace
}  // namespace assay::spec::claims::expression_test
