// labels: cli
// The report of a long run takes time in proportion to its steps and no more memory, and shows its spikes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "spec/record/chain.hpp"
#include "spec/record/write.hpp"
#include "tests/cli/built_program.hpp"
#include "tests/support/example_run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::long_report_test {
namespace {

constexpr std::int64_t spike = 7'777;

void write_record(const std::filesystem::path& folder, std::int64_t steps) {
  std::filesystem::create_directory(folder);
  std::ofstream record(folder / "run.jsonl", std::ios::binary);
  spec::record::Chain chain;
  record << chain.line_of(to_json(spec::record::Event(tests::example_start()))) << "\n";
  for (std::int64_t i = 1; i <= steps; ++i) {
    spec::record::Step step = tests::example_step(i);
    step.loss =
        i == spike ? 98.7654 : 5 - 3e-5 * static_cast<double>(i) + 1e-3 * static_cast<double>(i * 7919 % 101);
    step.mfu = step.hfu = 0.5;
    step.phases.clip = 1e-4 * static_cast<double>(i % 17);
    record << chain.line_of(to_json(spec::record::Event(step))) << "\n";
  }
}

/// Of the processes that have ended: processor time of all [s], and the largest peak of memory [bytes].
struct Used {
  double seconds;
  std::int64_t memory;
};
Used used() {
  rusage all{};
  getrusage(RUSAGE_CHILDREN, &all);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds(all.ru_utime) + seconds(all.ru_stime), all.ru_maxrss * 1024};
}

/// Processor time of the report [s], the least of five: other programs on the machine only add to it.
double seconds_of_report(const std::filesystem::path& folder) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double before = used().seconds;
    const auto outcome = tests::assay({"report", folder.string()});
    least = std::min(least, used().seconds - before);
    EXPECT_EQ(outcome.code, 0) << outcome.messages;
    EXPECT_EQ(outcome.messages, "");
  }
  return least;
}

/// Reports of 1, 10,000 and 100,000 steps; the first is the cost of starting the program. Without it, a step
/// of the longest report may cost up to twice as much processor time as one of the report that is a tenth as
/// long. Where each step costs the same the ratio is 1; where it costs in proportion to the steps before
/// it, 10.
///
/// The peak of memory may grow by as much as the page (its text is put together in memory) and 1 MiB that an
/// allocator may round by. The longer record has 55 MB more.
TEST(LongReportCli, TimeIsInProportionToTheStepsAndMemoryIsNot) {
  const tests::Scratch scratch;
  const auto start = scratch.path() / "start", shorter = scratch.path() / "shorter",
             longer = scratch.path() / "longer";
  write_record(start, 1), write_record(shorter, 10'000), write_record(longer, 100'000);
  const double start_up = seconds_of_report(start);
  const double shorter_each = (seconds_of_report(shorter) - start_up) / 10'000;
  const std::int64_t memory = used().memory;
  const double longer_each = (seconds_of_report(longer) - start_up) / 100'000;
  const std::int64_t more_memory = used().memory - memory;
  EXPECT_LT(longer_each, 2 * shorter_each) << start_up;
  const auto page_bytes = [](const auto& folder) {
    return static_cast<std::int64_t>(std::filesystem::file_size(folder / "report.html"));
  };
  EXPECT_LE(more_memory, std::max<std::int64_t>(0, page_bytes(longer) - page_bytes(shorter)) + (1 << 20));
  std::ifstream html(longer / "report.html");
  const std::string page{std::istreambuf_iterator<char>(html), {}};
  EXPECT_NE(page.find("98.7654"), std::string::npos) << "the spike is under the pointer";
  EXPECT_NE(page.find("100,000 of 250"), std::string::npos);
}

}  // namespace
}  // namespace assay::long_report_test
