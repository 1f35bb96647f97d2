// Writes a long truthful log of each format, for timing `assay audit` (ci/bench audit):
//
//   long_logs FOLDER BYTES [CASE ...]
//
// A case is a format, or one whose lines are not all alike: "megatron_text", half of which are lines that
// hold no step, and "megatron_ramp", whose batch grows. FOLDER/CASE.log has about BYTES bytes;
// FOLDER/CASE.arguments holds what `assay audit` needs to read it, a word a line.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>

#include "tests/support/simulated/run.hpp"

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

enum class Lines { steps, text, ramp };
struct Case {
  LogFormat format;
  Lines lines;
  std::string name() const {
    return std::string(to_string(format)) + (lines == Lines::text   ? "_text"
                                             : lines == Lines::ramp ? "_ramp"
                                                                    : "");
  }
};
std::vector<Case> cases() {
  std::vector<Case> out;
  for (std::size_t i = 0; i < log_formats; ++i) out.push_back({static_cast<LogFormat>(i), Lines::steps});
  out.push_back({LogFormat::megatron, Lines::text});
  out.push_back({LogFormat::megatron, Lines::ramp});
  return out;
}

/// Passes of each rank grow from one to those of the whole batch, and samples and times with them.
void grow_batch(const SimulatedRun& run, std::size_t begin, Report& report) {
  const std::int64_t most = run.accounting.accumulation;
  double sequences = 0, saved = 0;  // up to a step: all, and the seconds that it takes less
  for (std::size_t i = 0; i < begin + report.steps.size(); ++i) {
    const std::int64_t passes = 1 + static_cast<std::int64_t>(i) * most / std::ssize(run.steps);
    const double share = static_cast<double>(passes) / static_cast<double>(most);
    sequences += share * run.sequences();
    saved += (1 - share) * run.steps[i].seconds;
    if (i < begin) continue;
    ReportedStep& step = report.steps[i - begin];
    *step[Field::step_sequences] *= share;
    *step[Field::seconds] *= share;
    *step[Field::sequences_total] = sequences;
    *step[Field::elapsed] -= saved;
  }
}

/// As the arguments state such a batch.
std::string with_ramp(std::string header) {
  const std::size_t constant = header.find("INFO:megatron.core.num_microbatches_calculator:");
  header.erase(constant, header.find('\n', constant) + 1 - constant);
  return header.insert(header.find("  seq_length "),
                       "  rampup_batch_size ............................... ['256', '256', '9765625']\n");
}

/// As many bytes of what Megatron-LM prints besides steps, between these: savings, evaluations, timers,
/// warnings.
std::string with_text(const std::string& steps) {
  const std::string said[] = {
      "saving checkpoint at iteration    1000 to /checkpoints/gpt in torch_dist format",
      "  successfully saved checkpoint from iteration    1000 to /checkpoints/gpt [ t 1/2, p 1/4 ]",
      "(min, max) time across ranks (ms):",
      "    save-checkpoint ................................: (12873.40, 12880.31)",
      "    evaluate .......................................: (8312.11, 8312.53)",
      std::string(98, '-'),
      " validation loss at iteration 1000 | lm loss value: 2.348811E+00 | lm loss PPL: 1.047309E+01 | ",
      "torch/utils/checkpoint.py:61: UserWarning: None of the inputs have requires_grad=True",
      "WARNING:megatron.core.utils:fused layer norm is not available",
      "Evaluating on 25600 samples",
      "node-0003:18234:19012 [3] NCCL INFO Channel 07/0 : 3[3] -> 2[2] via P2P/CUMEM/read",
      ""};
  std::string out;
  std::size_t text = 0, which = 0;
  for (std::size_t begin = 0; begin < steps.size();) {
    const std::size_t end = steps.find('\n', begin) + 1;
    out.append(steps, begin, end - begin);
    begin = end;
    for (; text < begin; which = (which + 1) % std::size(said)) {
      out += said[which] + "\n";
      text += said[which].size() + 1;
    }
  }
  return out;
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
void write(const SimulatedRun& run, Lines lines, std::ostream& out) {
  SimulatedRun part = run;
  part.steps.clear();
  const std::string frame = render(run, report_of_part(run, part, 0));
  std::size_t ending = 0;
  for (std::size_t begin = 0; begin < run.steps.size(); begin += longest_part) {
    const auto from = run.steps.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t count = std::min(longest_part, run.steps.size() - begin);
    part.steps.assign(from, from + static_cast<std::ptrdiff_t>(count));
    Report printed = report_of_part(run, part, begin);
    if (lines == Lines::ramp) grow_batch(run, begin, printed);
    const std::string text = render(run, printed);
    const auto header = static_cast<std::size_t>(
        std::mismatch(frame.begin(), frame.end(), text.begin()).first - frame.begin());
    ending = frame.size() - header;
    const std::string before = text.substr(0, begin == 0 ? header : 0),
                      steps = text.substr(header, text.size() - ending - header);
    out << (lines == Lines::ramp && begin == 0 ? with_ramp(before) : before)
        << (lines == Lines::text ? with_text(steps) : steps);
  }
  out.write(frame.data() + frame.size() - ending, static_cast<std::streamsize>(ending));
}

void write_log(const Case& of, double bytes, const std::string& folder) {
  const LogFormat format = of.format;
  if (of.lines == Lines::text) bytes /= 2;
  // Two lengths separate header and line.
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
  const std::string path = folder + "/" + of.name();
  std::ofstream log(path + ".log", std::ios::binary), arguments(path + ".arguments");
  write(run, of.lines, log);
  const ReadArguments read = read_arguments(run);
  if (!read.map.empty()) arguments << "--map\n" << read.map << "\n";
  if (!read.set.empty()) arguments << "--set\n" << read.set << "\n";
  log.close();
  arguments.close();
  if (!log || !arguments) throw std::runtime_error("cannot write " + path + ".log");
}

}  // namespace

int main(int count, char** words) try {
  const double bytes = count > 2 ? std::strtod(words[2], nullptr) : 0;
  if (!(bytes >= 1e6)) {
    std::cerr << "usage: long_logs FOLDER BYTES [CASE ...], BYTES at least a million\n";
    return 2;
  }
  const std::vector<std::string> wanted(words + 3, words + count);
  for (const Case& one : cases())
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), one.name()) != wanted.end())
      write_log(one, bytes, words[1]);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "long_logs: " << error.what() << "\n";
  return 1;
}
