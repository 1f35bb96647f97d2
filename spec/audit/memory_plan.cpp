// What our own record says of a step's memory: planned, and measured on a GPU. Source: spec/record/record.md,
// "memory"; the program refuses a plan that does not fit, and warns where plan and measurement differ.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"

namespace assay::spec::audit {
namespace {

/// By how much the measured memory may be off the plan before the program warns. [share]
constexpr double warned_from = 0.02;

void judge_measured(const MemoryOfStart& memory, Result& out) {
  const double measured = *memory.measured, before = memory.peak_before.value_or(0);
  ++out.judged;
  if (out.verdict != Verdict::contradicts)
    out.printed = measured, out.recomputed = exact_interval(memory.planned);
  if (measured < std::max(memory.state, before)) {
    contradict(out, measured, {std::max(memory.state, before), memory.capacity}, memory.line);
    blame(out, "memory_measured_other",
          measured < memory.state ? "less was measured than weights, gradients and optimizer state take"
                                  : "less was measured than the step before it says");
  } else if (measured > memory.capacity) {
    contradict(out, measured, {0, memory.capacity}, memory.line);
    blame(out, "memory_beyond_device", "more than the device has: its memory is another's, or another unit");
  } else if (std::abs(measured / memory.planned - 1) > warned_from && !memory.warned && !memory.followed) {
    out.note = "the record ends where the program would warn that plan and measurement differ";
  } else if (std::abs(measured / memory.planned - 1) > warned_from && !memory.warned) {
    contradict(out, measured, exact_interval(memory.planned), memory.line);
    blame(out, "memory_measured_other",
          "so far off the plan the program warns, and no warning follows: another step's or another plan's");
  } else if (memory.warned) {
    out.note = "the program warned that plan and measurement differ";
  }
}

}  // namespace

Result judge_memory_plan(const Evidence& e) {
  Result out = holding(0);
  for (const MemoryOfStart& memory : e.record.memory) {
    ++out.judged;
    if (out.verdict != Verdict::contradicts)
      out.printed = memory.planned, out.recomputed = {0, memory.capacity};
    if (memory.parts != memory.planned) {
      contradict(out, memory.planned, exact_interval(memory.parts), memory.line);
      blame(out, "memory_plan_other", "not the sum of its tensors");
    } else if (memory.planned_at_start && *memory.planned_at_start != memory.planned) {
      contradict(out, memory.planned, exact_interval(*memory.planned_at_start), memory.line);
      blame(out, "memory_plan_other", "another plan than at the start of the run");
    } else if (memory.state > memory.planned) {
      contradict(out, memory.planned, {memory.state, 1e300}, memory.line);
      blame(out, "memory_plan_other", "less than its own weights, gradients and optimizer state");
    } else if (memory.planned > memory.capacity) {
      contradict(out, memory.planned, {0, memory.capacity}, memory.line);
      blame(out, "memory_beyond_device",
            "more than the device has, which the program refuses: its memory is another's, or another unit");
    } else if (memory.measured) {
      judge_measured(memory, out);
    }
  }
  return out.judged == 0 ? not_judged("a plan of the memory") : out;
}

}  // namespace assay::spec::audit
