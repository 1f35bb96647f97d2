#pragma once
// The batch of an optimizer step, stated once and globally, and the learning rate as a function of the step.
//
// Promised, in namespace assay:
//   spec::Batch, spec::batch_of
//   spec::Schedule, spec::ScheduleKind, spec::DecayShape, spec::check, spec::learning_rate
//
// Units: sequences, ranks, tokens; steps count from 0. Errors: SpecError batch_c1, schedule_c1..c4; UserError
// (usage) where micro-batch x ranks does not divide the batch, with the nearest values that do.
#include "spec/batch/batch.hpp"
#include "spec/batch/schedule.hpp"
