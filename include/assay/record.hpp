#pragma once
// The record of a run of Assay, run.jsonl: read, validated, put together.
//
// Promised, in namespace assay:
//   spec::record::kSchema, spec::record::Event, spec::record::from_json, spec::record::read_events
//   spec::record::Run, spec::record::assemble, spec::record::RunStart, spec::record::Step
//   spec::record::Warning, spec::record::Memory, spec::record::Checkpoint, spec::record::RunEnd
//   spec::record::mean_loss, spec::record::gap_closed
//
// Units stand with each field; losses are [nats per token]. Errors: UserError (bad_data) with file, line and
// field, also for a record of another schema than kSchema; UserError (io) where a file cannot be opened.
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
