#pragma once
// Results of `assay bench` as plain data: no tensors, so that printing them needs no libtorch.
#include <optional>
#include <string>
#include <vector>

#include "spec/time/waterfall.hpp"

namespace assay::impl::bench {

/// The measured device, and its limits by spec/hardware.
struct Subject {
  std::string device;        ///< "NVIDIA H200", "CPU"
  std::int64_t threads = 0;  ///< of the CPU
  std::string model;
  std::int64_t micro = 0, tokens = 0;  ///< sequences of a micro-batch, tokens of a sequence
  std::string dtype;                   ///< "bf16"
  spec::time::Ceiling ceiling;
};

/// One op, GEMM or copy. Times are of one call.
struct Row {
  std::string name;
  spec::time::StepClass kind = spec::time::StepClass::elementwise;
  double calls = 0;                 ///< in a step, whatever size; 0: not part of one
  double equal_calls = 0;           ///< of this size that move as many bytes as all of these
  double seconds = 0, fastest = 0;  ///< median and least [s]
  double flops = 0;                 ///< matmul [flop]
  double bytes = 0;                 ///< that it must move [B]
  std::optional<double> roofline;   ///< least time by peak and bandwidth [s]
};

/// A recipe's step, taken apart.
struct StepTimes {
  Subject subject;
  std::int64_t sequences = 0, steps = 0;        ///< of a step; steps that were measured
  double plain_seconds = 0;                     ///< median of steps that were not taken apart [s]
  spec::time::MeasuredStep step;                ///< the median one of those that were
  std::vector<spec::time::StepOpCount> counts;  ///< what its ops must do
  double exact_flops = 0, executed_flops = 0;   ///< of a step [flop]
  spec::time::Waterfall waterfall;
};

}  // namespace assay::impl::bench
