// labels: unit golden fault
// Event files against the bytes that TensorBoard's own writer makes (golden/tensorboard); its reader is tried
// by tests/cli/tensorboard_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "impl/logs/tensorboard/event_file.hpp"
#include "impl/logs/tensorboard/event_writer.hpp"
#include "spec/error.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::logs::tensorboard::tensorboard_test {
namespace {

namespace fs = std::filesystem;
using namespace spec::record;

constexpr double wall_time = 1700000000.25;

std::vector<std::int64_t> numbers_of(const std::string& bytes) {
  std::vector<std::int64_t> numbers;
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  return numbers;
}

TEST(TensorboardImpl, TheBytesAreThoseOfItsOwnWriter) {
  const auto golden = tests::load_golden("tensorboard/events.json");
  EXPECT_EQ(numbers_of(framed(version_event(wall_time))), golden.ids("version"));
  EXPECT_EQ(numbers_of(framed(start_event(wall_time, 300))), golden.ids("start"));
  EXPECT_EQ(numbers_of(framed(scalars_event(wall_time, std::int64_t{1} << 40,
                                            {{"loss/training", 3.1415926535, "nats per token"},
                                             {"optimizer/learning_rate", 0.0},
                                             {"größe", std::numeric_limits<double>::infinity()}}))),
            golden.ids("scalars"));
  EXPECT_EQ(numbers_of(framed(text_event(wall_time, 0, "settings", "| a | b |\n"))), golden.ids("text"));
}

TEST(TensorboardImpl, TheCrcIsTheirs) {
  const auto golden = tests::load_golden("tensorboard/events.json");
  std::vector<std::int64_t> plain, masked;
  for (const char* text : {"text_0", "text_1", "text_2", "text_3"}) {
    plain.push_back(crc32c(golden.text(text)));
    masked.push_back(masked_crc32c(golden.text(text)));
  }
  EXPECT_EQ(plain, golden.ids("crc32c"));
  EXPECT_EQ(masked, golden.ids("masked_crc32c"));
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u) << "the check value of RFC 3720's CRC";
}

/// The messages of a file; a wrong length or CRC is a failure.
std::vector<std::string> messages_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length =
        static_cast<unsigned char>(bytes[at]) + 256u * static_cast<unsigned char>(bytes[at + 1]);
    messages.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(bytes.substr(at, 16 + length), framed(messages.back()));
    at += 16 + length;
  }
  return messages;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(TensorboardImpl, AFileOfAStartBeginsWithItsVersionStartAndSettings) {
  const tests::Scratch scratch;
  EventWriter writer(scratch.path() / "run", [] { return wall_time; });
  EXPECT_EQ(writer.path().filename().string().substr(0, 31), "events.out.tfevents.1700000000.");
  const Step step = tests::example_step(1);
  for (const Event& event : {Event(tests::example_start()), Event(Warning{}), Event(step)})
    EXPECT_EQ(writer.write(event), std::nullopt);
  const auto messages = messages_of(writer.path());
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0], version_event(wall_time));
  EXPECT_EQ(messages[1], start_event(wall_time, 1));
  EXPECT_NE(messages[2].find("| run.directory | \"runs/tiny-llama\" |\n"), std::string::npos) << messages[2];
  EXPECT_EQ(messages[3], scalars_event(wall_time, 1, curves_of(step).scalars));
}

TEST(TensorboardImpl, AResumeIsANewFileThatReplacesTheStepsBehindIt) {
  const tests::Scratch scratch;
  const auto train = [&](const std::vector<Event>& events) {
    EventWriter writer(scratch.path(), [] { return wall_time; });
    for (const Event& event : events) EXPECT_EQ(writer.write(event), std::nullopt);
  };
  train({tests::example_start(), tests::example_step(1), tests::example_step(2)});
  train({tests::example_start(), ResumeFrom{.step = 1, .path = "checkpoint", .changed = {}},
         tests::example_step(2)});
  const auto files = files_of(scratch.path());
  ASSERT_EQ(files.size(), 2u);
  const auto second = messages_of(files[1]);
  ASSERT_EQ(second.size(), 4u);
  EXPECT_EQ(second[1], start_event(wall_time, 2)) << "of step 2 and later ones this file's count";
  EXPECT_EQ(second[3], scalars_event(wall_time, 2, curves_of(tests::example_step(2)).scalars));
}

TEST(TensorboardImpl, UnitsAreWrittenOnceATag) {
  const tests::Scratch scratch;
  EventWriter writer(scratch.path(), [] { return wall_time; });
  ASSERT_EQ(writer.write(tests::example_start()), std::nullopt);
  for (const std::int64_t number : {1, 2}) ASSERT_EQ(writer.write(tests::example_step(number)), std::nullopt);
  const auto messages = messages_of(writer.path());
  const auto has_units = [](const std::string& message) {
    return message.find("nats per token") != std::string::npos;
  };
  EXPECT_TRUE(has_units(messages.at(3)));
  EXPECT_FALSE(has_units(messages.at(4)));
}

std::map<std::string, double> values_of(const Curves& curves) {
  std::map<std::string, double> values;
  for (const Scalar& scalar : curves.scalars) EXPECT_TRUE(values.emplace(scalar.tag, scalar.value).second);
  return values;
}

TEST(TensorboardImpl, EveryNumberOfAStepHasItsCurve) {
  Step step = tests::example_step(7);
  step.loss = 2, step.learning_rate = 3, step.gradient_norm = 4, step.tokens_per_second = 5, step.mfu = 0.25;
  step.hfu = 0.5, step.resident_bytes = 3 << 20, step.device_peak_bytes = 5 << 20, step.seconds = 9;
  step.phases = {.data_wait = 1,
                 .forward = 2,
                 .backward = 3,
                 .reduce = 4,
                 .clip = 5,
                 .update = 6,
                 .checkpoint = 7,
                 .other = 8};
  step.sources = {{.name = "web", .tokens = 96, .valid_tokens = 90, .loss = 2.5, .epochs = 0.25}};
  step.z_loss = 10, step.clip_coefficient = 0.5;
  step.balance_loss = 11, step.router_z_loss = 12, step.load_balance_worst = 13, step.load_balance_mean = 14;
  step.router_entropy = 15, step.dropped_choices = 0.125;
  const Curves curves = curves_of(step);
  EXPECT_EQ(curves.step, 7);
  EXPECT_EQ(values_of(curves), (std::map<std::string, double>{{"loss/training", 2},
                                                              {"loss/z_loss", 10},
                                                              {"optimizer/learning_rate", 3},
                                                              {"optimizer/gradient_norm", 4},
                                                              {"optimizer/clip_coefficient", 0.5},
                                                              {"speed/tokens_per_second", 5},
                                                              {"speed/mfu", 25},
                                                              {"speed/hfu", 50},
                                                              {"memory/resident", 3},
                                                              {"memory/device_peak", 5},
                                                              {"time/step", 9},
                                                              {"time/data_wait", 1},
                                                              {"time/forward", 2},
                                                              {"time/backward", 3},
                                                              {"time/reduce", 4},
                                                              {"time/clip", 5},
                                                              {"time/update", 6},
                                                              {"time/checkpoint", 7},
                                                              {"time/other", 8},
                                                              {"sources/web/loss", 2.5},
                                                              {"sources/web/tokens", 96},
                                                              {"sources/web/epochs", 0.25},
                                                              {"router/balance_loss", 11},
                                                              {"router/z_loss", 12},
                                                              {"router/load_worst", 13},
                                                              {"router/load_mean", 14},
                                                              {"router/entropy", 15},
                                                              {"router/dropped", 12.5}}));
}

TEST(TensorboardImpl, ValidationsAndSkipsHaveTheirCurves) {
  Validation validation;
  validation.step = 10, validation.loss = 2.5, validation.perplexity = 12, validation.bits_per_byte = 0.75;
  validation.seconds = 1.5;
  const Curves curves = curves_of(validation);
  EXPECT_EQ(curves.step, 10);
  EXPECT_EQ(values_of(curves), (std::map<std::string, double>{{"loss/validation", 2.5},
                                                              {"validation/perplexity", 12},
                                                              {"validation/bits_per_byte", 0.75},
                                                              {"validation/seconds", 1.5}}));
  SkippedStep skipped;
  skipped.step = 4, skipped.skipped = 2;
  EXPECT_EQ(curves_of(skipped).step, 4);
  EXPECT_EQ(values_of(curves_of(skipped)), (std::map<std::string, double>{{"optimizer/skipped_steps", 2}}));
}

TEST(TensorboardImpl, AFolderThatTakesNoFileIsAnErrorThatSaysSo) {
  const tests::Scratch scratch;
  scratch.write("file", "");
  try {
    const EventWriter writer(scratch.path() / "file" / "run");
    FAIL() << "a file is no folder";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("log.tensorboard"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::impl::logs::tensorboard::tensorboard_test
