#pragma once
// A training step of one rank on paper: state, inputs, every micro-batch, the optimizer, sampling. Its
// results: memory (spec/plan/plan.md), the list of ops (spec/time/step_ops.md) and the FLOPs that run
// (spec/flops/executed.md).
#include <vector>

#include "spec/memory/ledger.hpp"
#include "spec/memory/setting.hpp"
#include "spec/step/paper/paper_ops.hpp"

namespace assay::spec::paper {

/// Of all of these `share` is share_of(setting).

/// Runs everything that a rank holds through `ledger`: state for the whole run, then a step, then sampling.
/// Errors: UserError of require_trainable; SpecError memory_c1 (micro, sequence_length, micro_batches or
/// staged_steps below 1).
void walk(const memory::Setting& setting, const Share& share, memory::Ledger& ledger);

/// What one micro-batch keeps between forward and backward, blocks counted together. Errors: as walk.
std::vector<memory::Item> kept_activations(const memory::Setting& setting);

/// Forward and backward of every micro-batch of a step, and every collective of the step. `lengths`:
/// documents of each sequence of a micro-batch, the same in each; empty: each sequence is one. Errors: as
/// walk; executed_c1, step_c3.
Trace trace(const memory::Setting& setting, const Share& share,
            const std::vector<std::vector<std::int64_t>>& lengths = {});
inline Trace trace(const memory::Setting& setting,
                   const std::vector<std::vector<std::int64_t>>& lengths = {}) {
  return trace(setting, share_of(setting), lengths);
}

/// The trainer's calls in their order, as positions in trace.memory: where one chunk of the head stands for
/// several, its calls come so many times.
std::vector<std::size_t> calls_of(const Trace& trace);

/// Every op of a step, calls of the same size as one entry, in the order in which a micro-batch meets them
/// first, the optimizer last. Errors: as trace.
std::vector<time::StepOpCount> step_ops(const memory::Setting& setting, const Share& share);
inline std::vector<time::StepOpCount> step_ops(const memory::Setting& setting) {
  return step_ops(setting, share_of(setting));
}

}  // namespace assay::spec::paper
