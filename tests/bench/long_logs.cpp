// Writes a long truthful log of each format, for timing `assay audit` (ci/bench audit):
//
//   long_logs FOLDER BYTES [FORMAT ...]
//
// FOLDER/FORMAT.log has about BYTES bytes; FOLDER/FORMAT.arguments holds what `assay audit` must be told to read
// it, a word a line. A simulated run is drawn and goes on at its lowest learning rate until the log is long enough.
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

/// The drawn run with `count` steps in all. What follows the drawn ones is like them, but for its learning rate.
SimulatedRun prolonged(SimulatedRun run, std::size_t count) {
  const std::vector<SimulatedStep> drawn = run.steps;
  while (run.steps.size() < count) {
    // Not the first fifth: its loss falls and its steps warm up.
    const std::size_t first = drawn.size() / 5, i = run.steps.size();
    SimulatedStep step = drawn[first + i % (drawn.size() - first)];
    step.learning_rate = run.lowest_rate;
    step.loss = drawn.back().loss * (1 + 1e-3 * static_cast<double>(i % 7));
    run.steps.push_back(step);
  }
  return run;
}

/// A log of `parts` times as many steps as `run` has, without holding it all: header, parts, ending.
void write(const SimulatedRun& run, std::size_t parts, std::ostream& out) {
  Report part = report(run);
  const double count = static_cast<double>(run.steps.size()), all = count * static_cast<double>(parts);
  part[Setting::max_steps] = all;
  *part[Setting::final_step] += all - count;
  for (const Setting total : {Setting::total_seconds, Setting::total_tokens})
    *part[total] *= static_cast<double>(parts);
  Report nothing = part;
  nothing.steps.clear();
  const std::string frame = render(run, nothing);
  std::size_t ending = 0;
  for (std::size_t k = 0; k < parts; ++k) {
    const std::string text = render(run, part);
    const auto header = static_cast<std::size_t>(
        std::mismatch(frame.begin(), frame.end(), text.begin()).first - frame.begin());
    ending = frame.size() - header;
    const std::size_t from = k == 0 ? 0 : header;
    out.write(text.data() + from, static_cast<std::streamsize>(text.size() - ending - from));
    for (ReportedStep& step : part.steps) {
      *step[Field::step] += count;
      *step[Field::elapsed] += *part[Setting::total_seconds] / static_cast<double>(parts);
      *step[Field::tokens_total] += count * *part[Setting::tokens_per_step];
      *step[Field::sequences_total] += count * *part[Setting::sequences];
    }
  }
  out.write(frame.data() + frame.size() - ending, static_cast<std::streamsize>(ending));
}

void write_log(LogFormat format, double bytes, const std::string& folder) {
  SimulatedRun drawn = simulate(format, seed);
  drawn.log_every = 1;
  // Two lengths tell header and line apart.
  const SimulatedRun shorter = prolonged(drawn, 1000), longer = prolonged(drawn, 2000);
  const double first = static_cast<double>(render(shorter).size()),
               line = (static_cast<double>(render(longer).size()) - first) / 1000;
  const double steps = std::max(1000.0, 1000 + (bytes - first) / line);
  const auto parts = static_cast<std::size_t>(steps) / longest_part + 1;
  const std::string path = folder + "/" + std::string(to_string(format));
  std::ofstream log(path + ".log", std::ios::binary), arguments(path + ".arguments");
  write(prolonged(drawn, static_cast<std::size_t>(steps) / parts), parts, log);
  const ReadArguments told = read_arguments(drawn);
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
