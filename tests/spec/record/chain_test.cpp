// labels: unit property
// Damage to a record is found, whatever it is: one is written with drawn events, damaged once, and read.
#include "spec/record/chain.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/record/write.hpp"
#include "tests/spec/record/draw_damage.hpp"
#include "tests/spec/record/draw_event.hpp"
#include "tests/support/example_run.hpp"

namespace assay::spec::record::chain_test {
namespace {

using tests::damaged, tests::drawn_place, tests::record_text;

/// Each with its line break.
std::vector<std::string> lines_of(const std::vector<Event>& events) {
  Chain chain;
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(chain.line_of(to_json(event)) + "\n");
  return lines;
}

/// A start and `more` drawn events.
std::vector<std::string> drawn_record(std::int64_t more) {
  std::vector<Event> events = {tests::example_start()};
  for (std::int64_t i = 0; i < more; ++i) events.push_back(tests::draw_event());
  return lines_of(events);
}

/// A start and steps 1 to `last`.
std::vector<std::string> example_record(std::int64_t last) {
  std::vector<Event> events = {tests::example_start()};
  for (std::int64_t step = 1; step <= last; ++step) events.push_back(tests::example_step(step));
  return lines_of(events);
}

std::string hash_in(const std::string& line) {
  return std::string(parts_of(std::string_view(line).substr(0, line.size() - 1)).hash);
}

bool refused(const std::string& text) {
  std::istringstream in(text);
  try {
    read_events(in, "run.jsonl");
    return false;
  } catch (const UserError& error) {
    return error.code() == ExitCode::bad_data;
  }
}

/// What a reader finds that goes on, or is stopped by.
bool noted(const std::string& text, std::vector<StatedPlace> places = {}) {
  std::istringstream in(text);
  Tolerance tolerance{.places = std::move(places), .damage = {}};
  try {
    read_events(in, "run.jsonl", &tolerance);
  } catch (const UserError& error) {
    return error.code() == ExitCode::bad_data;
  }
  return tolerance.damage.count > 0;
}

RC_GTEST_PROP(ChainSpec, EveryDamageIsFound, ()) {
  const auto lines = drawn_record(*rc::gen::inRange(0, 8));
  RC_ASSERT(!refused(record_text(lines)));
  const std::string text = damaged(lines);
  RC_ASSERT(refused(text));
  RC_ASSERT(noted(text));
}

/// A record that ends early may be that of a run that was killed, unless something says how far it went.
RC_GTEST_PROP(ChainSpec, ACutEndIsFoundByWhatWasSavedBehindIt, ()) {
  const auto lines = drawn_record(*rc::gen::inRange(1, 8));
  const std::size_t saved = drawn_place(lines.size());
  std::size_t end = 0;
  for (std::size_t i = 0; i <= saved; ++i) end += lines[i].size();
  const std::string text = record_text(lines);
  const std::vector<StatedPlace> places = {{.hash = hash_in(lines[saved]), .by = "step_00000100"}};
  RC_ASSERT(noted(text.substr(0, drawn_place(end - 1)), places));  // the line break alone is no loss
  RC_ASSERT(!noted(text, places));
  RC_ASSERT(!noted(text.substr(0, end + drawn_place(text.size() - end + 1)), places));
}

TEST(ChainSpec, TheHashIsThatOfAnotherProgram) {
  // python3 -c 'import xxhash; print(xxhash.xxh3_64_hexdigest(b"{\"event\":\"a\"", seed=0),
  //   xxhash.xxh3_64_hexdigest(b"{\"event\":\"b\"", seed=0x9f6e17c2f9d9dae1))'
  Chain chain;
  EXPECT_EQ(chain.line_of(R"({"event":"a"})"), R"({"event":"a","chain":"9f6e17c2f9d9dae1"})");
  EXPECT_EQ(chain.line_of(R"({"event":"b"})"), R"({"event":"b","chain":"8ed85acfadc33193"})");
}

TEST(ChainSpec, ARecordOfAnEarlierVersionIsGoneOnWith) {
  const std::string start = to_json(tests::example_start()), step = to_json(tests::example_step(1));
  Chain chain;
  chain.go_on_behind(step);
  const std::string next = chain.line_of(to_json(tests::example_step(2)));
  const auto events = [&](const std::string& text) {
    std::istringstream in(text);
    return read_events(in, "x").size();
  };
  EXPECT_EQ(events(start + "\n" + step + "\n" + next + "\n"), 3u);
  EXPECT_TRUE(refused(start + "\n" + next + "\n")) << "the line before the first hash is cut out";
  EXPECT_TRUE(refused(start + "\n" + step + "\n" + next + "\n" + step + "\n")) << "a line without a hash";
}

TEST(ChainSpec, ALineThatWasCutOffIsNoDamage) {
  const auto lines = example_record(3);
  const std::string text = record_text(lines);
  for (std::size_t length = 1; length < lines[3].size(); ++length) {
    const std::string cut = text.substr(0, text.size() - lines[3].size() + length);
    EXPECT_FALSE(noted(cut)) << length;
  }
}

TEST(ChainSpec, ALastLineWhoseLineBreakIsDamagedWasNotCutOff) {
  std::string text = record_text(example_record(3));
  for (int bit = 0; bit < 8; ++bit) {
    text.back() = static_cast<char>('\n' ^ (1 << bit));
    EXPECT_TRUE(noted(text)) << bit;
  }
}

/// Both have the hash of a first line: they are two runs' whole records, and no damage of one.
TEST(ChainSpec, RecordsMayBePutBehindOneAnother) {
  const auto lines = example_record(2);
  EXPECT_FALSE(refused(record_text(lines) + record_text(lines)));
}

/// Whatever stands in the middle, the lines behind it are held to one another.
TEST(ChainSpec, OneDamagedLineIsNamedAndTheOthersAreRead) {
  std::vector<std::string> lines = example_record(9);
  lines[4].replace(lines[4].find("5.5453"), 6, "5.6453");
  lines[6].replace(lines[6].find("\"loss\""), 6, "loss  ");
  std::istringstream in(record_text(lines));
  Tolerance tolerance;
  const auto events = read_events(in, "run.jsonl", &tolerance);
  EXPECT_EQ(events.size(), 9u) << "one line cannot be read";
  const auto told = tolerance.damage.sentences();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].rfind("run.jsonl:5: record_c3: the line is not as it was written", 0), 0u) << told[0];
  EXPECT_EQ(told[1].rfind("run.jsonl:7: ", 0), 0u) << told[1];
}

TEST(ChainSpec, DamageIsToldInAFewSentences) {
  Damage damage;
  for (int i = 1; i <= 8; ++i) damage.note("line " + std::to_string(i));
  const auto told = damage.sentences();
  ASSERT_EQ(told.size(), 6u);
  EXPECT_EQ(told[4], "line 5");
  EXPECT_EQ(told[5], "and 3 more lines are damaged");
}

}  // namespace
}  // namespace assay::spec::record::chain_test
