#pragma once
// The audit: a training log of any known trainer, or a record that a program fills, judged by what must hold
// between its numbers.
//
// Promised, in namespace assay:
//   spec::audit::RunRecord, spec::audit::Step, spec::audit::Setting, spec::audit::Field, spec::audit::Scope
//   spec::audit::setting_named, spec::audit::field_named, spec::audit::to_string
//   spec::audit::Printed, spec::audit::Kind, spec::audit::exactly, spec::audit::parse_printed
//   spec::audit::read_log, spec::audit::read_logs, spec::audit::ReadOptions
//   spec::audit::Invariant, spec::audit::invariants, spec::audit::judge, spec::audit::Result
//   spec::audit::Verdict, spec::audit::Cause, spec::audit::Unit, spec::audit::shown
//   spec::audit::consistent, spec::audit::contradictions, spec::audit::objections
//
// Of a RunRecord, origin, format.tokens_per_second, model, gpu, dtype, steps, steps_seen and the settings by
// [Setting] are promised; its other members are for readers of logs. Units: of each Setting and Field its
// own, in base units (seconds, bytes, FLOP/s, shares of 1). Errors: of reading, UserError (usage, bad_data),
// one line that says what, where, why and what to do next; judging throws SpecError audit_c1 for an unknown
// id alone.
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/audit/run_record.hpp"
