#pragma once
// A training step of one rank on paper: its ops in order, the FLOPs that run, the bytes that each op must
// move. The step is that of Assay's own trainer, which runs the same template over real tensors.
//
// Promised, in namespace assay:
//   spec::memory::Setting, spec::paper::Trace, spec::paper::OpRecord, spec::paper::OpMemory
//   spec::paper::Gemm, spec::paper::trace, spec::paper::step_ops, spec::paper::kept_activations
//   spec::time::StepOp, spec::time::StepPass, spec::time::StepOpCount, spec::time::to_string
//   spec::time::name_of, spec::time::Ceiling, spec::time::roofline
//
// Units: [flop] and [B] of one call, exact integers (Count); seconds; Ceiling in [flop/s] and [B/s]. Errors:
// as assay/memory.hpp, and SpecError executed_c1 (no document, or one below 1 token).
#include "spec/step/paper/run.hpp"
#include "spec/time/step_ops.hpp"
