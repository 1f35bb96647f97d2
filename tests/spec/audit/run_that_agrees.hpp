#pragma once
// A record by hand whose every number agrees with the others: tests change one of them.
#include "spec/audit/run_record.hpp"

namespace assay::tests {

inline spec::audit::Printed counted(double value) { return spec::audit::exactly(value, 1); }
/// As printed to within `half` of `value`.
inline spec::audit::Printed measured(double value, double half) {
  return {value, value - half, value + half, 1};
}

/// A run in which everything agrees: 4 GPUs, 8 sequences of 2 x 1 x 4, T 1000, 2 s a step.
inline spec::audit::RunRecord plain() {
  using namespace spec::audit;
  RunRecord r;
  r[Setting::gpus] = counted(4);
  r[Setting::sequence_length] = counted(1000);
  r[Setting::micro] = counted(2);
  r[Setting::accumulation] = counted(1);
  r[Setting::sequences] = counted(8);
  r[Setting::tokens_per_step] = counted(8000);
  r.gpu = "NVIDIA A100-SXM4-80GB";
  r[Setting::flops_per_token] = counted(3.12e10);
  r[Setting::peak_flops] = counted(4 * 312e12);
  for (int i = 1; i <= 12; ++i) {
    Step step;
    step.line = i;
    step[Field::step] = counted(i);
    step[Field::seconds] = measured(2, 0.005);
    step[Field::tokens_per_second] = measured(4000, 0.5);
    step[Field::flops_rate] = measured(1.248e14, 1e11);
    step[Field::mfu] = measured(0.1, 5e-5);
    step[Field::loss] = measured(5 - 0.1 * i, 5e-5);
    step[Field::tokens_total] = counted(8000.0 * i);
    step[Field::elapsed] = measured(2.0 * i + 7, 0.5);
    r.steps.push_back(step);
  }
  r.steps_seen = 12;
  return r;
}

}  // namespace assay::tests
