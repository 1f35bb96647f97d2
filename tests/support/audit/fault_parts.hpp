#pragma once
// What the faults of faults.cpp and faults_of_*.cpp are put together from.
#include <algorithm>
#include <cmath>

#include "tests/support/audit/faults.hpp"

namespace assay::tests::fault_parts {

using spec::audit::Field;
using spec::audit::Setting;
using F = LogFormat;
using Faulty = std::optional<Report>;

inline double real(std::int64_t n) { return static_cast<double>(n); }

/// A number of [0, n) that depends on the seed alone.
inline std::size_t pick(std::uint64_t seed, std::size_t n) {
  return static_cast<std::size_t>((seed * 0x9E3779B97F4A7C15u >> 33) % n);
}

/// KempnerForge has heads of width / heads alone, so it never trained this model.
inline bool possible(const SimulatedRun& run) {
  return run.format != F::kempnerforge || run.model.name != "qwen3-0.6b";
}

/// Changes the trainer's accounting, then reports.
template <class Change>
auto accounting(Change change) {
  return [change](SimulatedRun& run, std::uint64_t seed) -> Faulty {
    if (!possible(run) || !change(run, seed)) return std::nullopt;
    return report(run);
  };
}

/// Changes what is printed.
template <class Change>
auto printing(Change change) {
  return [change](SimulatedRun& run, std::uint64_t seed) -> Faulty {
    Report out = report(run);
    if (!possible(run) || !change(run, out, seed)) return std::nullopt;
    return out;
  };
}

inline void scale(Report& report, Field field, double factor) {
  for (ReportedStep& step : report.steps)
    if (step[field]) *step[field] *= factor;
}

/// The index of a line in the middle that has `field`; nothing when there are fewer than eight.
inline std::optional<std::size_t> line_with(const Report& report, Field field, std::uint64_t seed) {
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < report.steps.size(); ++i)
    if (report.steps[i][field]) lines.push_back(i);
  if (lines.size() < 8) return std::nullopt;
  return lines[3 + pick(seed, lines.size() - 5)];
}

inline bool several_ranks_and_passes(const SimulatedRun& run) {
  return run.data_parallel > 1 && run.accumulation > 1;
}

/// A share of one rank and a share of one pass are the same number.
inline const std::vector<Twin> as_many_passes = {
    {"as many passes as ranks: one rank's share of a step is one micro-batch per rank",
     [](const SimulatedRun& run, std::uint64_t) { return run.data_parallel == run.accumulation; }},
    {"as many passes as GPUs: one GPU's share of a step is one micro-batch per GPU",
     [](const SimulatedRun& run, std::uint64_t) {
       return run.gpus == run.accumulation && run.data_parallel != run.accumulation;
     }}};

/// Behind the warm-up a constant rate says nothing of the step.
inline const std::vector<Twin> short_warmups = {
    {"as many passes as ranks: a step for every pass is one for every rank",
     [](const SimulatedRun& run, std::uint64_t) { return run.data_parallel == run.accumulation; }},
    {"a constant rate whose warm-up is over with the first step: there is none, or its steps are numbered "
     "otherwise",
     [](const SimulatedRun& run, std::uint64_t) {
       return run.schedule == "constant" && (run.accumulation >= run.warmup_steps || run.warmup_steps <= 3);
     }}};

/// The sum over passes is the sum over ranks.
inline const std::vector<Twin> passes_as_ranks = {
    {"as many passes as ranks: a sum over passes is one over ranks",
     [](const SimulatedRun& run, std::uint64_t) { return run.data_parallel == run.accumulation; }}};

inline const std::vector<Twin> two_gpus = {
    {"two GPUs: twice or half of one GPU's peak is the peak of another number of GPUs",
     [](const SimulatedRun& run, std::uint64_t) { return run.gpus == 2; }}};

/// Passes that are performed in place of the stated ones.
inline std::int64_t performed(const SimulatedRun& run, std::uint64_t seed) {
  return 2 + static_cast<std::int64_t>(pick(seed, static_cast<std::size_t>(run.accumulation - 2)));
}

inline double attention(const SimulatedRun& run) {
  return 12 * real(run.model.layers) * real(run.model.heads * run.model.head_dim) * real(run.sequence_length);
}
/// Whether the trainer of the format counts attention over the causal half of the pairs (convention_flops).
inline bool counts_causal_half(LogFormat format) {
  switch (format) {
    case LogFormat::llm_tii:
    case LogFormat::llm_tii_json:
    case LogFormat::nanogpt:
    case LogFormat::torchtitan:
    case LogFormat::kempnerforge:
    case LogFormat::nanotron:
    case LogFormat::build_nanogpt:
      return false;
    default:
      return true;
  }
}
/// What it counts of attention, of one token.
inline double attention_counted(const SimulatedRun& run) {
  return counts_causal_half(run.format) ? attention(run) / 2 : attention(run);
}
/// Whether it counts the input embedding as if it were multiplied.
inline bool counts_embedding(LogFormat format) {
  return format == LogFormat::llm_tii || format == LogFormat::llm_tii_json || format == LogFormat::nanogpt ||
         format == LogFormat::llmc;
}
inline double embedding(const SimulatedRun& run) { return 6 * real(run.model.vocab) * real(run.model.width); }

inline Fault line_fault(const char* id, Field field, std::vector<LogFormat> formats) {
  return {id,
          "one line's number times 1.3",
          std::move(formats),
          {},
          printing([field](SimulatedRun&, Report& r, std::uint64_t seed) {
            const auto at = line_with(r, field, seed);
            if (!at) return false;
            *r.steps[*at][field] *= 1.3;
            return true;
          })};
}

/// Faults of FLOPs and of totals since the start (faults_of_flops.cpp).
std::vector<Fault> flops_faults();
/// Faults of losses and learning rates, and of steps (faults_of_lines.cpp).
std::vector<Fault> loss_faults();
std::vector<Fault> step_faults();
/// Faults of our own record, and of summaries and second numbers (faults_of_summaries.cpp).
std::vector<Fault> record_faults();
std::vector<Fault> summary_faults();

}  // namespace assay::tests::fault_parts
