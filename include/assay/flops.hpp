#pragma once
// FLOPs of a model: what it needs (exact), what a step really runs (executed), and how other trainers count.
//
// Promised, in namespace assay:
//   spec::exact_flops, spec::exact_flops_per_token, spec::multi_token_flops, spec::matmul_parameters
//   spec::FlopBreakdown, spec::FlopComponent, spec::Pass, spec::to_string
//   spec::executed_flops, spec::ExecutedFlops, spec::ExecutedCount, spec::ExecutedPass, spec::AttentionKernel
//   spec::Recompute, spec::Convention, spec::ConventionFacts, spec::ConventionCount, spec::conventions
//   spec::facts_of, spec::convention_from, spec::flops_per_token
//
// Units: [flop], a multiply-add is two; exact integers (Count). Exact: forward and backward, causal pairs
// once, no recompute, without the input embedding. Errors: SpecError model_c1.., flops_c1, executed_c1,
// executed_c2.
#include "spec/flops/conventions.hpp"
#include "spec/flops/exact.hpp"
#include "spec/flops/executed.hpp"
