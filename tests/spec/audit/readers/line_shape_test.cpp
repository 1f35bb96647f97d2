// labels: unit property
// Lines that are read at one go, because a line before them was alike, give what each gives on its own. Whole
// logs of them: lines_alike_test.cpp.
#include "spec/audit/readers/line_shape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/readers/read_log.hpp"
#include "tests/spec/audit/readers/read_lines.hpp"

namespace assay::spec::audit::line_shape_test {
namespace {

using tests::joined;
using tests::read_lines;

struct Learned {
  LineShapes shapes;
  explicit Learned(const std::string& line, Notation notation = Notation::text) : shapes(notation) {
    TakenNumbers taken;
    for (const auto& [name, field] : {std::pair("step", Field::step), std::pair("loss", Field::loss)})
      taken.add(line.data() + line.find_first_of("0123456789", line.find(name)), field, Kind::measured, 1);
    shapes.learn(line, taken);
  }
  std::optional<double> loss(const std::string& line) {
    Step step;
    if (shapes.read(line, 1, step) == 0) {
      EXPECT_FALSE(step[Field::step] || step[Field::loss]) << line;
      return std::nullopt;
    }
    return step[Field::loss]->value;
  }
};

TEST(LineShapeSpec, NumbersAndTheBlanksBeforeThemMayDiffer) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  EXPECT_EQ(known.loss("[02:11] step 7 bf16 loss 2.50 (+0.1z)"), 2.5);
  EXPECT_EQ(known.loss("[23:59] step   1008 bf16 loss -1.25e+01 (-12z)"), -12.5);
  EXPECT_EQ(known.loss("[23:59] step 1008 bf16 loss 12,345,678.5 (-12z)"), 12345678.5);
}

/// Each tab may end a cell, an empty one too.
TEST(LineShapeSpec, TabsAreNoBlanks) {
  Learned empty("step 7 loss\t\t2.50");
  EXPECT_FALSE(empty.loss("step 8 loss\t9.50").has_value());
  for (const char* between : {"\t", "\t ", " \t"}) {
    Learned known(std::string("step 7 loss") + between + "2.50");
    EXPECT_EQ(known.loss(std::string("step 8 loss") + between + "3.50"), 3.5) << between;
    for (const char* more : {"\t", "\t ", " \t"})
      EXPECT_FALSE(known.loss(std::string("step 8 loss") + between + more + "9.50").has_value()) << between;
  }
}

TEST(LineShapeSpec, TextThatDiffersIsAnotherLine) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  for (const char* line : {"[02:11] step 7 bf32 loss 2.50 (+0.1z)", "[02:11] step 7 bf16 loss nan (+0.1z)",
                           "[02:11] step 7 bf16 loss 2.50 (+0.1y)", "[02:11] step 7 bf16 loss 2.50 (+0.1z) ",
                           "[02:11] step 7 bf16 loss 2.50 (+z)", "[02:11] step7 bf16 loss 2.50 (+0.1z)",
                           "[02:11] step 7 bf16 loss", "[02", ""})
    EXPECT_FALSE(known.loss(line).has_value()) << line;
}

/// nanoGPT's reader knows its lines by "iter ", digits and a colon: no other line may pass for one because a
/// line before it was alike, nor fail to because others have been learned since.
TEST(LineShapeSpec, AStepsNumberOfDigitsStaysOne) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  for (const char* odd :
       {"[02:12] step -8 bf16 loss 2.51 (+0.2z)", "[02:12] step +8 bf16 loss 2.51 (+0.2z)",
        "[02:12] step 1,008 bf16 loss 2.51 (+0.2z)", "[02:12] step 8.5 bf16 loss 2.51 (+0.2z)",
        "[02:12] step 8e3 bf16 loss 2.51 (+0.2z)"}) {
    EXPECT_FALSE(known.loss(odd).has_value()) << odd;
    EXPECT_FALSE(known.shapes.glance({odd, 1, -1, true, false}).has_value()) << odd;
  }
  std::vector<std::string> lines;
  lines.reserve(5000);
  for (int step = 0; step < 5000; ++step)
    lines.push_back("iter " + std::to_string(step) + ": loss 3.0668, time 28.71ms, mfu 40.80%");
  // Each of four is a line of its own, so that the usual one is learned no more.
  for (const int odd : {4000, 4001, 4002, 4003}) lines[odd].insert(5 + odd - 3999, "nan");
  lines[4500] = "iter -4500: loss 3.0668, time 28.71ms, mfu 40.80%";
  lines[4600] = "iter 4,600: loss 3.0668, time 28.71ms, mfu 40.80%";
  const auto every_step = [](const RunRecord&, const Step&) { return true; };
  const auto quick = read_lines(joined(lines), {}, true),
             whole = read_lines(joined(lines), {}, false, every_step);
  ASSERT_EQ(quick.size(), 1u);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(quick[0].steps_seen, whole[0].steps_seen);
}

/// A number that is right-aligned is the same number, whether a line before it was alike or not.
TEST(LineShapeSpec, BlanksBeforeAStepsNumberAreReadAlikeInTheFirstLineAndLater) {
  const std::string aligned = "iter   7: loss 3.0668, time 28.71ms, mfu 40.80%",
                    plain = "iter 6: loss 3.0701, time 28.70ms, mfu 40.81%";
  const auto alone = read_lines(joined({aligned}), {}), learned = read_lines(joined({plain, aligned}), {});
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(learned.size(), 1u);
  ASSERT_EQ(alone[0].steps.size(), 1u);
  ASSERT_EQ(learned[0].steps.size(), 2u);
  for (const Step& step : {alone[0].steps[0], learned[0].steps[1]}) {
    EXPECT_EQ(step[Field::step]->value, 7);
    EXPECT_EQ(step[Field::loss]->value, 3.0668);
  }
}

TEST(LineShapeSpec, DigitsOfAKeyAreItsName) {
  Learned known(R"({"step":1,"loss":2.5,"layer 3":"at 10:05"})", Notation::json);
  EXPECT_EQ(known.loss(R"({"step":22,"loss":3.25,"layer 3":"at 23:59"})"), 3.25);
  EXPECT_FALSE(known.loss(R"({"step":22,"loss":3.25,"layer 4":"at 23:59"})").has_value());
  EXPECT_FALSE(known.loss(R"({"step":22,"loss":+3.25,"layer 3":"at 23:59"})").has_value());
}

TEST(LineShapeSpec, AGlanceSeesWhatIsOdd) {
  Learned known("[02:11] step 7 bf16 loss 2.50 (+0.1z)");
  const auto glance = [&](const std::string& text) {
    return known.shapes.glance({text, 1, -1, true, false});
  };
  EXPECT_EQ(glance("[02:12] step 8 bf16 loss 2.51 (+0.2z)")->number, 8);
  EXPECT_EQ(glance("[02:12] step 9 bf16 loss 2.52 (+0.3z)")->number, 9);
  for (const char* odd : {"[02:12] step 9 bf16 loss -2.5 (+0.3z)", "[02:12] step 9 bf16 loss 1e999 (+0.3z)",
                          "[02:12] step 9 bf32 loss 2.52 (+0.3z)", "[02:12] step 9 bf16 loss inf (+0.3z)"})
    EXPECT_FALSE(glance(odd).has_value()) << odd;
}

/// Lines of one layout differ in the digits of their numbers alone; what is watched is read, and a step's
/// number whatever its width.
TEST(LineShapeSpec, AGlanceAtALayoutReadsWhatItMust) {
  const std::string first = "step 7 lr 1.500e-05 mfu 0.4100 of 3 GB";
  const auto learned = [&](double unit) {
    TakenNumbers taken;
    taken.add(first.data() + 5, Field::step, Kind::counted, 1);
    taken.add(first.data() + 10, Field::learning_rate, Kind::measured, 1);
    taken.add(first.data() + 24, Field::mfu, Kind::measured, unit);
    LineShapes shapes;
    shapes.learn(first, taken);
    return shapes;
  };
  LineShapes share = learned(1), percent = learned(0.01);
  const auto glance = [](LineShapes& shapes, const std::string& text) {
    return shapes.glance({text, 1, -1, true, false});
  };
  for (int round = 0; round < 3; ++round) {  // the second and third time by the layout of the first
    EXPECT_LT(glance(share, "step 8 lr 9.999e-06 mfu 0.4321 of 4 GB")->mfu_low, 0.4321);
    EXPECT_NEAR(glance(share, "step 8 lr 9.999e-06 mfu 1.2345 of 4 GB")->mfu_low, 1.2345, 1e-3);
    EXPECT_LT(glance(percent, "step 8 lr 9.999e-06 mfu 99.999 of 4 GB")->mfu_low, 1);
    EXPECT_NEAR(glance(percent, "step 8 lr 9.999e-06 mfu 123.45 of 4 GB")->mfu_low, 1.2345, 1e-3);
    for (const char* step : {"9", "10", "1234567", "12345678", "123456789", "98765432101"})
      EXPECT_EQ(glance(share, "step " + std::string(step) + " lr 9.999e-06 mfu 0.4 of 4 GB")->number,
                std::strtod(step, nullptr));
    EXPECT_FALSE(glance(share, "step 8 lr 9.999e-06 mfu 0.4;21 of 4 GB").has_value()) << "; is 0x3b";
    EXPECT_FALSE(glance(share, "step 8 lr 9.999e-06 mfu 0.4321 of 4 GiB").has_value());
  }
}

/// A number as a log may print it: up to nine digits before the point and behind it, digit groups, an
/// exponent.
std::string drawn_number() {
  const auto digits = [](int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += *rc::gen::inRange('0', static_cast<char>('9' + 1));
    return out;
  };
  std::string out = digits(*rc::gen::inRange(1, 10));
  if (*rc::gen::inRange(0, 6) == 0) out = digits(*rc::gen::inRange(1, 4)) + "," + digits(3);
  if (*rc::gen::inRange(0, 3) > 0) out += "." + digits(*rc::gen::inRange(1, 10));
  if (*rc::gen::inRange(0, 3) == 0)
    out += *rc::gen::element<std::string>("e-", "e+", "E-", "E+") + digits(*rc::gen::inRange(2, 4));
  return out;
}

/// The digits drawn anew: of the layout of the first.
std::string of_same_layout(std::string line) {
  for (char& c : line)
    if (c >= '0' && c <= '9') c = *rc::gen::inRange('0', static_cast<char>('9' + 1));
  return line;
}

/// A glance gives the very doubles that reading the line gives, or nothing.
RC_GTEST_PROP(LineShapeProperty, AGlanceReadsWhatReadingDoes, ()) {
  struct Of {
    const char* name;
    Field field;
  };
  constexpr Of numbers[] = {{"loss ", Field::loss},
                            {" rate ", Field::tokens_per_second},
                            {" time ", Field::seconds},
                            {" mfu ", Field::mfu}};
  TakenNumbers taken;
  std::string first = "step 7 ";
  std::vector<std::size_t> places;
  for (const Of& of : numbers) {
    first += of.name;
    places.push_back(first.size());
    first += drawn_number();
  }
  first += *rc::gen::element<std::string>("", "%", "ms of all");
  taken.add(first.data() + 5, Field::step, Kind::counted, 1);
  for (std::size_t i = 0; i < places.size(); ++i)
    taken.add(first.data() + places[i], numbers[i].field, *rc::gen::element(Kind::counted, Kind::measured),
              *rc::gen::element(1.0, 0.01, 1e-3, 60.0, 1073741824.0, 1e12));
  LineShapes shapes;
  shapes.learn(first, taken);
  int glances = 0;
  for (int round = 0; round < 4; ++round) {  // from the second on by the layout of the first
    const std::string line = round == 0 ? first : of_same_layout(first);
    const auto glance = shapes.glance({line, 1, -1, true, false});
    Step step;
    if (!glance) continue;
    ++glances;
    RC_ASSERT(shapes.read(line, 1, step) == line.size());
    RC_ASSERT(glance->number == step[Field::step]->value);
    for (const Of& of : numbers)
      RC_ASSERT(
          glance->watched[static_cast<std::size_t>(watched_places[static_cast<std::size_t>(of.field)])] ==
          step[of.field]->value);
    RC_ASSERT(glance->mfu_low == step[Field::mfu]->low);
  }
  RC_CLASSIFY(glances == 4);
}

/// Of a text that ends with its bytes: nothing behind it may be read, neither a digit nor a line break.
TEST(LineShapeSpec, ANumberThatBlanksStandForEndsWithTheText) {
  const std::string first = "step 10 loss 2.5000 rate 123";
  TakenNumbers taken;
  taken.add(first.data() + 5, Field::step, Kind::counted, 1);
  taken.add(first.data() + 13, Field::loss, Kind::measured, 1);
  taken.add(first.data() + 25, Field::tokens_per_second, Kind::measured, 1);
  for (const char* behind : {"7", "-7", " 7", "        7"}) {
    LineShapes shapes;
    shapes.learn(first, taken);
    const std::string line = "step 11 loss 2.4000 rate   ", longer = line + behind;
    Step step;
    EXPECT_EQ(shapes.read(std::string_view(longer).substr(0, line.size()), 1, step, true), 0u) << behind;
    EXPECT_FALSE(step[Field::tokens_per_second]);
  }
}

}  // namespace
}  // namespace assay::spec::audit::line_shape_test
