#pragma once
// What a training run needs of a device's memory, before any of it is allocated, and what fits where it does
// not. The plan is that of Assay's own trainer.
//
// Promised, in namespace assay:
//   spec::memory::Setting, spec::memory::Machine, Dtype, spec::Recompute
//   spec::Layout, spec::DataParallel, spec::layout_of
//   spec::memory::Plan, spec::memory::plan, spec::memory::Item, spec::memory::Purpose
//   spec::memory::Fit, spec::memory::Way, spec::memory::fit
//   spec::memory::LayoutWay, spec::memory::layouts_that_fit
//
// Units: [B], of one rank; exact integers (Count). Errors: UserError (usage) for a model that the trainer
// does not train; SpecError memory_c1 (a size below 1), data_layout_c1..c3.
#include "spec/plan/layouts_that_fit.hpp"
#include "spec/plan/plan.hpp"
