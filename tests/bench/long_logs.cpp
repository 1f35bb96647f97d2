// Writes a long truthful log of each format, for timing `assay audit` (ci/bench audit):
//
//   long_logs FOLDER BYTES [FORMAT ...]
//
// FOLDER/FORMAT.log has about BYTES bytes; FOLDER/FORMAT.arguments holds what `assay audit` must be told to
// read it, a word a line.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>

#include "tests/support/simulated_run.hpp"

namespace {

using namespace assay::tests;  // NOLINT: this program speaks of nothing else
using assay::spec::audit::Field;
using assay::spec::audit::Setting;

constexpr std::size_t longest_part = 100'000;  // steps rendered at once
constexpr std::uint64_t seed = 11;

bool of_lines(LogFormat format) {
  return format != LogFormat::llm_tii_json && format != LogFormat::llmq_json &&
         format != LogFormat::hugging_face;
}

/// What a part of a run prints: its own steps, and the settings of the whole.
Report report_of_part(const SimulatedRun& run, const SimulatedRun& part, std::size_t begin) {
  Report out = report(part);
  const double before = static_cast<double>(begin), all = static_cast<double>(run.steps.size());
  double seconds = run.seconds_outside, elapsed = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    seconds += run.steps[i].seconds;
    if (i < begin) elapsed += run.steps[i].seconds;
  }
  out[Setting::max_steps] = all;
  out[Setting::final_step] = all - 1 + static_cast<double>(run.first_number());
  out[Setting::total_seconds] = seconds;
  out[Setting::total_tokens] = run.tokens() * all;
  out[Setting::average_tokens_per_second] = run.tokens() * all / seconds;
  // The ending is the same behind every part.
  for (const Setting mean :
       {Setting::average_seconds, Setting::average_mfu, Setting::average_loss, Setting::final_loss})
    out[mean].reset();
  for (ReportedStep& step : out.steps) {
    step[Field::planned_steps] = all;
    *step[Field::step] += before;
    *step[Field::elapsed] += elapsed;
    *step[Field::tokens_total] += before * run.tokens();
    *step[Field::sequences_total] += before * run.sequences();
  }
  return out;
}

/// The log of `run` in parts, for the text of a gigabyte would not fit: header, steps, ending.
void write(const SimulatedRun& run, std::ostream& out) {
  SimulatedRun part = run;
  part.steps.clear();
  const std::string frame = render(run, report_of_part(run, part, 0));
  std::size_t ending = 0;
  for (std::size_t begin = 0; begin < run.steps.size(); begin += longest_part) {
    const auto from = run.steps.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t count = std::min(longest_part, run.steps.size() - begin);
    part.steps.assign(from, from + static_cast<std::ptrdiff_t>(count));
    const std::string text = render(run, report_of_part(run, part, begin));
    const auto header = static_cast<std::size_t>(
        std::mismatch(frame.begin(), frame.end(), text.begin()).first - frame.begin());
    ending = frame.size() - header;
    const std::size_t first = begin == 0 ? 0 : header;
    out.write(text.data() + first, static_cast<std::streamsize>(text.size() - ending - first));
  }
  out.write(frame.data() + frame.size() - ending, static_cast<std::streamsize>(ending));
}

void write_log(LogFormat format, double bytes, const std::string& folder) {
  // Two lengths tell header and line apart.
  const auto size = [&](std::int64_t steps) {
    SimulatedRun run = simulate(format, seed, steps);
    run.log_every = 1;
    return static_cast<double>(render(run).size());
  };
  const double first = size(1000), line = (size(2000) - first) / 1000;
  SimulatedRun run = simulate(format, seed, static_cast<std::int64_t>(1000 + (bytes - first) / line));
  run.log_every = 1;
  if (!of_lines(format) && run.steps.size() > longest_part)
    throw std::runtime_error(std::string(to_string(format)) + " is one JSON document: 20 MB at most");
  const std::string path = folder + "/" + std::string(to_string(format));
  std::ofstream log(path + ".log", std::ios::binary), arguments(path + ".arguments");
  write(run, log);
  const ReadArguments told = read_arguments(run);
  if (!told.map.empty()) arguments << "--map\n" << told.map << "\n";
  if (!told.set.empty()) arguments << "--set\n" << told.set << "\n";
  log.close();
  arguments.close();
  if (!log || !arguments) throw std::runtime_error("cannot write " + path + ".log");
}

}  // namespace

int main(int count, char** words) try {
  const double bytes = count > 2 ? std::strtod(words[2], nullptr) : 0;
  if (!(bytes >= 1e6)) {
    std::cerr << "usage: long_logs FOLDER BYTES [FORMAT ...], BYTES at least a million\n";
    return 2;
  }
  const std::vector<std::string> wanted(words + 3, words + count);
  for (std::size_t i = 0; i < log_formats; ++i) {
    const auto format = static_cast<LogFormat>(i);
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), to_string(format)) != wanted.end())
      write_log(format, bytes, words[1]);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "long_logs: " << error.what() << "\n";
  return 1;
}
